package csds_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/testutil"
)

// row says what an answer has of the only resource of a process.
func (p *process) row() string {
	p.Helper()
	synctest.Wait()
	resp, err := csds.New(csds.Config{}, p.c).FetchClientStatus(p.Context(), nil)
	must(p.T, err)
	r := resp.GetConfig()[0].GetGenericXdsConfigs()[0]
	contents := r.GetXdsConfig().GetTypeUrl()
	out := fmt.Sprintf("%s %q %s", r.GetClientStatus(), r.GetVersionInfo(), contents[strings.LastIndexByte(contents, '.')+1:])
	if t := r.GetLastUpdated(); t != nil {
		out += t.AsTime().Format(" 15:04:05")
	}
	if e := r.GetErrorState(); e != nil {
		refused := e.GetFailedConfiguration().GetTypeUrl()
		out += fmt.Sprintf(" error %q %s", e.GetVersionInfo(), refused[strings.LastIndexByte(refused, '.')+1:])
	}
	return out
}

// What is held is told through the end of a stream without a word, a server that cannot be reached, and a new one, with
// the time of its last change. What was refused is over when the server sends on another stream what is held.
//
// spec: CSDS-2 CSDS-3 CSDS-b CSDS-d
func TestThroughStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.watch(cds.Type, "a")
		st := p.accept()
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a")))
		at := time.Now().UTC().Format("15:04:05")
		same(t, "accepted", p.row(), `ACKED "1" Cluster `+at)
		time.Sleep(time.Minute)
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", invalid("a")))
		same(t, "refused", p.row(), `NACKED "1" Cluster `+at+` error "2" Cluster`)
		st.End(nil)
		st = p.accept()
		same(t, "on a new stream", p.row(), `NACKED "1" Cluster `+at+` error "2" Cluster`)
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a")))
		same(t, "taken back", p.row(), `ACKED "1" Cluster `+at)
		p.srv.SetRefuse(true)
		p.srv.DropConnections()
		time.Sleep(time.Minute)
		same(t, "without a server", p.row(), `ACKED "1" Cluster `+at)
		p.srv.SetRefuse(false)
		time.Sleep(time.Minute)
		p.accept().End(nil) // without a response
		same(t, "after a silent stream", p.row(), `ACKED "1" Cluster `+at)
		p.send(p.accept(), testutil.SotW(cds.Type.TypeURL(), "3", "n1", cluster("a")))
		same(t, "another version of it", p.row(), `ACKED "3" Cluster `+at)
	})
}

// What the store had is waited for, and there with its contents, version and the time when it was accepted, until a
// server speaks of it.
//
// spec: LKG-4 CSDS-3
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := store.Dir(t.TempDir(), store.Options{})
		p := newProcess(t, func(c *client.Config) { c.Store = kept })
		p.watch(cds.Type, "a")
		p.send(p.accept(), testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a")))
		at := time.Now().UTC().Format("15:04:05")
		p.c.Close()
		<-p.c.Done()
		time.Sleep(time.Hour)
		p.srv.SetRefuse(true)
		p.begin()
		p.watch(cds.Type, "a")
		time.Sleep(time.Minute)
		same(t, "stale", p.row(), `REQUESTED "1" Cluster `+at)
		p.srv.SetRefuse(false)
		time.Sleep(time.Minute)
		p.send(p.accept(), testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a")))
		same(t, "confirmed", p.row(), `ACKED "1" Cluster `+time.Now().UTC().Format("15:04:05"))
	})
}

// What a server sends in place of a resource that is elsewhere has its own type.
func TestRedirect(t *testing.T) {
	const from, to = "xdstp://same/envoy.config.cluster.v3.Cluster/from", "xdstp://same/envoy.config.cluster.v3.Cluster/to"
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"same": {}} })
		p.watch(cds.Type, from)
		st := p.accept()
		send := func(version, to string) {
			locator := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), to)
			p.send(st, testutil.SotW(cds.Type.TypeURL(), version, "n"+version,
				testutil.Wrapped(from, version, &anypb.Any{TypeUrl: resource.TypePrefix + "xds.core.v3.ResourceLocator", Value: locator})))
		}
		at := time.Now().UTC().Format("15:04:05")
		send("1", to)
		same(t, "row", p.row(), `ACKED "1" ResourceLocator `+at)
		send("2", "http://elsewhere/cluster")
		same(t, "refused", p.row(), `NACKED "1" ResourceLocator `+at+` error "2" ResourceLocator`)
	})
}

// A glob has a row while it is waited for, as a wildcard has.
func TestGlob(t *testing.T) {
	const glob = "xdstp://same/envoy.config.cluster.v3.Cluster/*"
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, func(c *client.Config) {
			c.Bootstrap.Authorities = map[string]bootstrap.Authority{"same": {}}
			c.Variant = client.VariantDelta
		})
		_, err := p.c.WatchAll(context.Background(), cds.Type, glob, func(client.Batch[any]) {})
		must(t, err)
		st := p.accept()
		same(t, "before", p.row(), `REQUESTED "" `)
		p.send(st, testutil.Delta(cds.Type.TypeURL(), "n1", []*discoveryv3.Resource{
			testutil.Wrapped("xdstp://same/envoy.config.cluster.v3.Cluster/a", "7", cluster("a")),
		}))
		same(t, "after", p.row(), `ACKED "7" Cluster `+time.Now().UTC().Format("15:04:05"))
	})
}
