package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
)

// With all each listener has values of its own.
func TestResolveAll(t *testing.T) {
	t.Parallel()
	for _, variant := range variants {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			m := managed(t, append(shop(), proxyListener("second", "legacy"))...)
			p := startResolve(t, m.Addr(), "--variant", variant, "--stdin", "--resource-timeout", silence, "all")
			seen := map[string]string{}
			for len(seen) < 2 {
				ev := p.await("config")
				var l report.Named
				if err := json.Unmarshal(ev.Listener, &l); err != nil {
					t.Fatal(err)
				}
				seen[l.Name] = ev.names()
			}
			if seen["ingress"] != "backend=ok frontend=ok" || seen["second"] != "backend=ok gone=error" {
				t.Errorf("%v", seen)
			}
			if err := m.Set("2", shop()...); err != nil {
				t.Fatal(err)
			}
			if ev := p.await("removed"); string(ev.Listener) != `"second"` {
				t.Errorf("%s", ev.Listener)
			}
			p.enter("dump")
			if d := p.await("dump"); len(d.Watched) != 6 || len(d.Waiting) != 0 {
				t.Errorf("%+v", d)
			}
			p.enter("hold backend")
			p.complains("hold is for the configuration of one root")
			p.enter("quit")
			p.ends(0)
			p = startResolve(t, m.Addr(), "--variant", variant, "--once", "all")
			p.await("config")
			p.ends(0)
		})
	}
}

// A listener that is in error from the start hides neither that the list of listeners is there, nor the
// end of a graph.
func TestAllBesideBadListener(t *testing.T) {
	t.Parallel()
	for _, variant := range variants {
		args := []string{"--variant", variant, "--resource-timeout", silence}
		resources := append(shop(), proxyListener("second", "nosuch"))
		t.Run("graph "+variant, func(t *testing.T) {
			t.Parallel()
			m := managed(t, resources...)
			status, out, errs := runOnce(t, append([]string{"graph", "--server", m.Addr(), "--for", "1m", "all"}, args...)...)
			if status != 3 || !strings.Contains(out, "rds nosuch MISSING") || strings.Contains(errs, `lds "*"`) {
				t.Errorf("status %d, %s%s", status, out, errs)
			}
		})
		t.Run("resolve "+variant, func(t *testing.T) {
			t.Parallel()
			m := managed(t, resources...)
			p := startResolve(t, m.Addr(), append([]string{"--stdin", "all"}, args...)...)
			p.await("error")
			for len(p.await("waiting").For) > 0 {
			}
			p.enter("quit")
			p.ends(0)
		})
	}
}

// Every listener is one of the collection that the bootstrap names, with the node's parameters or without.
func TestResolveAllOfLocator(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ params, own string }{{"", ""}, {"?xds.node.id=envoy", "node_context_params: [id]"}} {
		s := testutil.StartCollectionServer(t)
		name := "xdstp://east/envoy.config.listener.v3.Listener/p/in" + of.params
		for _, named := range []struct {
			name     string
			resource proto.Message
		}{
			{name, proxyListener(name, "shop")}, {"other", proxyListener("other", "shop")}, {"shop", routesTo("shop", "backend")},
			{"backend", edsCluster("backend")}, {"backend", assignment("backend", "10.0.0.1")},
		} {
			if err := s.Set(testutil.Wrapped(named.name, "1", named.resource)); err != nil {
				t.Fatal(err)
			}
		}
		boot := envoyBootstrap(t, s.Addr(), of.own+`
dynamic_resources:
  ads_config: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  lds_resources_locator: xdstp://east/envoy.config.listener.v3.Listener/p/*
default_config_source:
  api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
`)
		status, out, errs := runOnce(t, "resolve", "--bootstrap", boot, "--once", "--for", "1m", "-o", "json", "all")
		if status != 0 || !strings.Contains(out, `"listener":{"name":"`+name+`"`) || strings.Contains(out, `"name":"other"`) {
			t.Errorf("%q: status %d, %s%s", of.params, status, out, errs)
		}
		if status, out, errs = runOnce(t, "graph", "--bootstrap", boot, "--for", "1m", "all"); status != 0 || !strings.Contains(out, name) || strings.Contains(out, "other") {
			t.Errorf("%q: graph: status %d, %s%s", of.params, status, out, errs)
		}
	}
	nobody := envoyBootstrap(t, testutil.StartCollectionServer(t).Addr(), `
dynamic_resources:
  lds_resources_locator: xdstp://east/envoy.config.listener.v3.Listener/p/*
default_config_source:
  api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
`)
	if status, out, errs := runOnce(t, "resolve", "--bootstrap", nobody, "--once", "--for", "1m", "-o", "json", "all"); status != 0 || strings.Contains(out, `"config"`) {
		t.Errorf("without members: status %d, %s%s", status, out, errs)
	}
}

// A view is ready a moment before its value is printed: --once waits for the value.
func TestResolveAllPrintsBeforeEnd(t *testing.T) {
	t.Parallel()
	r := resolverOf(t, managed(t, shop()...))
	r.all = true
	var err error
	if r.client, err = r.target.client(nil); err != nil {
		t.Fatal(err)
	}
	// Without functions in its Config: what is ready has not been printed.
	if r.every, err = view.NewListeners(t.Context(), r.client, view.Config{}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	if err := r.every.Ready(patient(t)); err != nil {
		t.Fatal(err)
	}
	close(r.started)
	r.onSynced()
	if r.output.ended() {
		t.Error("it ends before the value is printed")
	}
	for v := range r.views() {
		r.onSnapshot(v.Snapshot())
	}
	if !r.output.ended() {
		t.Error("it does not end with the value")
	}
}

// A dump is an answer also where there is no listener.
func TestResolveNoListeners(t *testing.T) {
	t.Parallel()
	for _, variant := range variants {
		m := managed(t, edsCluster("backend"))
		p := startResolve(t, m.Addr(), "--variant", variant, "--stdin", "all")
		for len(p.await("waiting").For) > 0 { // until the server has said that there are none
		}
		p.enter("dump")
		if d := p.await("dump"); d.Config != nil || len(d.Waiting) != 0 || len(d.Watched) != 0 {
			t.Errorf("%s: %+v", variant, d)
		}
		p.enter("quit")
		p.ends(0)
	}
}

// A dump says that the list of listeners is waited for.
func TestResolveDumpBeforeListeners(t *testing.T) {
	t.Parallel()
	p := startResolve(t, server(t).Target(), "--stdin", "all")
	p.enter("dump")
	if d := p.await("dump"); d.Config != nil || len(d.Waiting) != 1 || d.Waiting[0].Name != "*" || len(d.Watched) != 0 {
		t.Errorf("%+v", d)
	}
	p.enter("quit")
	p.ends(0)
}

// All that is waited for has been told to be over in the end.
func TestResolveWaitingEnds(t *testing.T) {
	t.Parallel()
	m := managed(t, shop()...)
	p := startResolve(t, m.Addr(), "lds:ingress")
	for {
		if ev := p.await("waiting"); len(ev.For) == 0 {
			break
		}
	}
}

// resolverOf is what --once begins with, in this process.
func resolverOf(t *testing.T, m *testutil.ManagementServer, held ...string) *resolver {
	t.Helper()
	return newResolver(targetOf(t, m.Addr()), silent{}, true, held...)
}

// targetOf is what flags that name a server make.
func targetOf(t *testing.T, server string) *target {
	t.Helper()
	var f connFlags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.register(set)
	if err := set.Parse([]string{"--server", server}); err != nil {
		t.Fatal(err)
	}
	to, err := f.open(&cobra.Command{})
	if err != nil {
		t.Fatal(err)
	}
	return to
}
