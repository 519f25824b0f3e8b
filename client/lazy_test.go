package client_test

import (
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// A lazy type refuses what protobuf refuses and accepts the rest, which its values and guards
// decode; other bytes are a change.
//
// spec: U-19 ACK-3 WATCH-4
func TestLazy(t *testing.T) {
	lazy := resource.LazyOf(cds.Type)
	value := func(v any) (*clusterv3.Cluster, error) { return v.(*resource.Lazy[*clusterv3.Cluster]).Value() }
	guard := func(p *client.Proposal) error {
		for _, ch := range p.Changed {
			if c, err := value(ch.Value); err == nil && c.GetName() != ch.Name {
				t.Errorf("the guard of %q reads %q", ch.Name, c.GetName())
			}
		}
		return nil
	}
	inBubble(t, func(t *testing.T, r *rig) {
		_, good := r.watchType(lazy, "a")
		_, broken := r.watchType(lazy, "b")
		st := r.accept()
		r.latest(st, "cds [a b]")
		send := func(version, nonce string, payloads ...string) {
			t.Helper()
			m := &discoveryv3.DiscoveryResponse{TypeUrl: cds.Type.TypeURL(), VersionInfo: version, Nonce: nonce}
			for _, p := range payloads {
				m.Resources = append(m.Resources, &anypb.Any{TypeUrl: cds.Type.TypeURL(), Value: []byte(p)})
			}
			r.send(st, m)
			synctest.Wait()
		}
		const name, alt, unnamedHealthCheck = "\n\x01a", "\xe2\x01\x01x", "\x42\x00"
		send("1", "n1", name+alt, "\n\x01b\xe2\x01\x01\xff")
		good.heard(t, "updated a 1")
		const refused = "failed b rejected: not a message of type envoy.config.cluster.v3.Cluster: string field contains invalid UTF-8"
		broken.heard(t, refused)
		requests := st.Requests()
		if nack := requests[len(requests)-1]; nack.Nonce() != "n1" || nack.ErrorDetail() == nil {
			t.Errorf("a string that is not UTF-8 is answered by %s", short(nack))
		}
		if c, err := value(good.last().Value); err != nil || c.GetAltStatName() != "x" {
			t.Errorf("the value is %v, %v", c, err)
		}

		send("2", "n2", alt+name, "\n\x01b"+unnamedHealthCheck) // as long, and the same to protobuf
		r.latest(st, "cds [a b] v2 n2")
		good.heard(t, "updated a 1", "updated a 2")
		broken.heard(t, refused, "updated b 2")
		if _, err := value(broken.last().Value); err == nil {
			t.Error("a health check without its required fields is good")
		}
	}, func(c *client.Config) { c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {guard}} })
}
