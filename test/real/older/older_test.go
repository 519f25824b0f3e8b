package older

import (
	"fmt"
	"os"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/realtest/process"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/watcher"
)

// program is the server's, made by TestMain.
var program string

func TestMain(m *testing.M) { os.Exit(process.Build(m, &program)) }

// A name that is dropped and wanted again has its value, though the server has sent that before, for a wildcard or by
// name; and does not exist if it has gone meanwhile.
//
// spec: S-30
func TestDroppedNames(t *testing.T) {
	for name, variant := range map[string]client.Variant{"sotw": client.VariantSotW, "delta": client.VariantDelta} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := process.Start(t, func(line []byte) { t.Errorf("the server says %s", line) }, program)
			s.Set("1 a b")
			boot, err := bootstrap.Parse("test", fmt.Appendf(nil,
				`{"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}]}], "node": {"id": "node"}}`, s.Addrs[0]))
			must(t, err)
			requests, acks := make(chan struct{}, 100), make(chan struct{}, 100)
			c, err := client.New(client.Config{Bootstrap: boot, Variant: variant, ResourceTimeout: 4 * time.Second, Trace: &client.Trace{
				Request: func(client.RequestInfo) { requests <- struct{}{} },
				ACK:     func(client.AnswerInfo) { acks <- struct{}{} },
			}})
			must(t, err)
			t.Cleanup(func() {
				c.Close()
				<-c.Done()
			})
			watch := func(name, want string) *client.Watch {
				told := make(chan string, 100)
				w, err := watcher.Watch(t.Context(), c, cds.Type, name, func(ev watcher.Event[*clusterv3.Cluster]) {
					told <- fmt.Sprint(ev.Kind, " ", ev.Value.GetAltStatName())
				})
				must(t, err)
				if got := <-told; got != want {
					t.Fatalf("%s %s, want %s", name, got, want)
				}
				return w
			}
			drop := func(w *client.Watch) {
				for len(requests) > 0 {
					<-requests
				}
				w.Stop()
				<-requests // by which the server is told
			}
			watch("b", "updated 1")
			<-acks
			if variant == client.VariantDelta { // in state of the world the server is silent about a wildcard beside names
				there := make(chan struct{}, 1)
				all, err := watcher.WatchAll(t.Context(), c, cds.Type, "*", func(b watcher.Batch[*clusterv3.Cluster]) {
					for _, ev := range b.Events {
						if ev.Name == "a" {
							there <- struct{}{}
						}
					}
				}, client.ExplicitWildcard())
				must(t, err)
				<-there
				<-acks
				drop(all)
			}
			for range 2 {
				a := watch("a", "updated 1")
				<-acks
				drop(a)
			}
			s.Set("2 b")
			<-acks
			watch("a", "does not exist ")
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
