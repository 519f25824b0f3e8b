package client_test

import (
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// The server of go-control-plane tells all that it has to a wildcard that begins beside a name,
// ends, and begins again.
// spec: WILD-3 S-21 P-1 P-2
func TestRealServerWildcardBesideName(t *testing.T) {
	for name, variant := range map[string]client.Variant{"state of the world": client.VariantSotW, "delta": client.VariantDelta} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testutil.StartManagementServer(t, testutil.ManagementConfig{})
			must(t, srv.Set("1", cluster("a", "one"), cluster("b", "one"), assignment("e")))
			boot, err := bootstrap.Server(srv.Addr())
			must(t, err)
			c, err := client.New(client.Config{Bootstrap: boot, Variant: variant})
			must(t, err)
			defer func() {
				c.Close()
				<-c.Done()
			}()

			named := make(chan client.Event[any], 100)
			hear := func(ev client.Event[any]) { named <- ev }
			_, err = c.Watch(t.Context(), eds.Type, "e", hear) // which keeps the stream
			must(t, err)
			_, err = c.Watch(t.Context(), cds.Type, "a", hear)
			must(t, err)
			await(t, named, "updated a one")
			all := func(want ...string) *client.Watch {
				events := make(chan client.Event[any], 100)
				w, err := c.WatchAll(t.Context(), cds.Type, "*", func(b client.Batch[any]) {
					for _, ev := range b.Events {
						events <- ev
					}
				})
				must(t, err)
				for _, text := range want {
					await(t, events, text)
				}
				return w
			}
			w := all("updated a one", "updated b one", "synced *")
			w.Stop()
			must(t, srv.Set("2", cluster("a", "two"), cluster("b", "one"), cluster("c", "two"), assignment("e")))
			await(t, named, "updated a two")
			all("updated a two", "updated b one", "updated c two", "synced *")
		})
	}
}
