package client_test

import (
	"fmt"
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
		if v, err := r.c.Dump()[0].Value(); err != nil || v.(*clusterv3.Cluster).GetAltStatName() != "x" {
			t.Errorf("the value of the state is %v, %v", v, err)
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

// A lazy and a plain watch of one resource share its subscription, whichever is first, and each
// gets its form; two lazy types of one plain type are the same. From then on the client refuses
// what the plain type refuses. A resource that was accepted before is a failure of the plain watch
// and of Get alone. Guards read both forms.
//
// spec: U-19 ACK-3
func TestLazyBesidePlain(t *testing.T) {
	const good, bad = "\n\x01a\xe2\x01\x01x", "\n\x01a\x42\x00" // bad: a health check without its required fields
	read := func(v any) string {
		if l, ok := v.(*resource.Lazy[*clusterv3.Cluster]); ok {
			c, err := l.Value()
			return fmt.Sprintf("lazy %s %t %t", c.GetAltStatName(), err == nil, len(l.Raw()) > 0)
		}
		c, _ := v.(*clusterv3.Cluster)
		return "plain " + c.GetAltStatName()
	}
	for _, lazyFirst := range []bool{true, false} {
		guarded := 0
		guard := func(p *client.Proposal) error {
			for _, ch := range p.Changed {
				v, err := resource.Decoded(ch.Value)
				if c, ok := v.(*clusterv3.Cluster); err == nil && (!ok || c.GetName() != ch.Name) {
					t.Errorf("the guard of %q reads %v", ch.Name, v)
				}
				guarded++
			}
			return nil
		}
		inBubble(t, func(t *testing.T, r *rig) {
			var lazy, plain *record
			watchLazy := func() { _, lazy = r.watchType(resource.LazyOf(cds.Type), "a") }
			watchPlain := func() { _, plain = r.watchType(cds.Type, "a") }
			if lazyFirst {
				watchLazy()
			} else {
				watchPlain()
			}
			st := r.accept()
			r.latest(st, "cds [a]")
			send := func(version, nonce, payload string) {
				t.Helper()
				r.send(st, &discoveryv3.DiscoveryResponse{
					TypeUrl: cds.Type.TypeURL(), VersionInfo: version, Nonce: nonce,
					Resources: []*anypb.Any{{TypeUrl: cds.Type.TypeURL(), Value: []byte(payload)}},
				})
				synctest.Wait()
			}
			if lazyFirst {
				send("1", "n1", bad)
				lazy.heard(t, "updated a 1")
				watchPlain()
				synctest.Wait()
				if plain.last().Kind != client.EventFailed {
					t.Errorf("the plain watch of what was accepted lazily: %v", plain.last())
				}
				if ev, err := r.c.Get(t.Context(), cds.Type, "a"); err == nil {
					t.Errorf("Get of what was accepted lazily: %v", ev)
				}
			} else {
				send("1", "n1", good)
				watchLazy()
				synctest.Wait()
			}
			send("2", "n2", good+"y")
			for st := range r.c.States() {
				if st.Name == "a" && st.Version != "1" {
					t.Errorf("bytes that are no message: version %q is held", st.Version)
				}
			}
			send("3", "n3", good+"\xe2\x01\x01z")
			if got, want := read(lazy.last().Value), "lazy z true true"; got != want {
				t.Errorf("the lazy watch has %s, want %s", got, want)
			}
			if got, want := read(plain.last().Value), "plain z"; got != want {
				t.Errorf("the plain watch has %s, want %s", got, want)
			}
			for kind, want := range map[resource.AnyType]string{cds.Type: "plain z", resource.LazyOf(cds.Type): "lazy z true true"} {
				ev, err := r.c.Get(t.Context(), kind, "a")
				if got := read(ev.Value); err != nil || got != want {
					t.Errorf("Get has %s, %v, want %s", got, err, want)
				}
			}

			send("4", "n4", bad)
			requests := st.Requests()
			if nack := requests[len(requests)-1]; nack.Nonce() != "n4" || nack.ErrorDetail() == nil {
				t.Errorf("what the plain type refuses is answered by %s", short(nack))
			}
			if lazy.last().Kind != client.EventAmbientError || plain.last().Kind != client.EventAmbientError {
				t.Errorf("of a refused update: lazy %v, plain %v", lazy.last().Kind, plain.last().Kind)
			}
			if guarded == 0 {
				t.Error("the guard saw no change")
			}
		}, func(c *client.Config) { c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {guard}} })
	}
}
