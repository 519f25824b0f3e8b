package client_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// With Envoy's config_sources there need be no top-level server. Authorities of one server
// share its stream, whichever source names them; what nobody answers for fails at once and
// asks nobody.
//
// spec: AUTH-1 CFG-3 STREAM-2 BOOTE-2
func TestConfigSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := testutil.NewServer(testutil.Named("first")), testutil.NewServer(testutil.Named("second"))
		defer first.Close()
		defer second.Close()
		to := func(s *testutil.Server) []bootstrap.ManagementServer {
			return []bootstrap.ManagementServer{{URI: s.Target(), ChannelCreds: bootstrap.Insecure()}}
		}
		boot := &bootstrap.Config{
			Sources: []bootstrap.Source{
				{Authorities: []string{"a", "b"}, Servers: to(first)},
				{Authorities: []string{"c", "b"}, Servers: to(second)},
			},
			DefaultSource: &bootstrap.Source{Servers: to(first)},
		}
		c, err := client.New(client.Config{
			Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: []grpc.DialOption{testutil.InMemory(first, second)}},
		})
		must(t, err)
		defer c.Close()

		_, err = c.Watch(t.Context(), cds.Type, "old", func(client.Event[any]) {})
		var re *client.ResourceError
		if !errors.Is(err, authority.ErrNoServers) || !errors.As(err, &re) || re.Kind != client.ErrorConfig {
			t.Errorf("an old-style name: %v", err)
		}
		if text := err.Error(); !strings.HasPrefix(text, "xds: ") || !strings.HasSuffix(text, "; a watch may bring a source along (FromSource)") {
			t.Errorf("an old-style name: %v", text)
		}
		if _, err = c.WatchAll(t.Context(), cds.Type, "*", func(client.Batch[any]) {}); !errors.Is(err, authority.ErrNoServers) {
			t.Errorf("everything: %v", err)
		}
		synctest.Wait()
		if n := len(first.Streams()) + len(second.Streams()); n != 0 {
			t.Fatalf("%d streams for nothing", n)
		}

		name := func(authority string) string { return "xdstp://" + authority + "/" + clusterName + "/x" }
		for _, a := range []string{"a", "b", "c", "d", "e"} {
			_, err := c.Watch(t.Context(), cds.Type, name(a), func(client.Event[any]) {})
			must(t, err)
		}
		for server, authorities := range map[*testutil.Server][]string{first: {"a", "b", "d", "e"}, second: {"c"}} {
			st, err := server.Accept(t.Context())
			must(t, err)
			var want []string
			for _, a := range authorities {
				want = append(want, name(a))
			}
			for {
				req, err := st.Next(t.Context())
				must(t, err)
				if slices.Equal(req.Names(), want) {
					break
				}
			}
			if n := len(server.Streams()); n != 1 {
				t.Errorf("%s has %d streams, want 1", server.Target(), n)
			}
		}
	})
}

// A watch that is for delta alone is an error where a server is asked in state of the world, and asks nobody.
//
// spec: VHDS-1
func TestDeltaOnly(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		inBubble(t, func(t *testing.T, r *rig) {
			_, err := r.c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) {}, client.DeltaOnly())
			re, isConfig := errors.AsType[*client.ResourceError](err)
			isConfig = isConfig && re.Kind == client.ErrorConfig && strings.Contains(err.Error(), "is asked in state of the world")
			synctest.Wait()
			asked := len(r.srv.Streams())
			if variant == client.VariantSotW && (!isConfig || asked != 0) || variant == client.VariantDelta && (err != nil || asked != 1) {
				t.Errorf("%v: %v, and there are %d streams", variant, err, asked)
			}
		}, func(c *client.Config) { c.Variant = variant })
	}
}
