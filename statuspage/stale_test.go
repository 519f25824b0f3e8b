package statuspage_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/statuspage"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// lastRun is a store with one cluster of the server.
type lastRun struct{ server string }

func (l lastRun) Load(_ client.StoreSection, _ []string, yield func(client.StoredResource)) error {
	value, err := anypb.New(cluster("a"))
	if err != nil {
		return err
	}
	b, err := proto.Marshal(&discoveryv3.Resource{Name: "a", Version: "7", Resource: value})
	if err != nil {
		return err
	}
	yield(client.StoredResource{Name: "a", Resource: b, Server: l.server, Updated: time.Now()})
	return nil
}

func (lastRun) Save(client.StoreSection, []client.StoredResource) error { return nil }

func (lastRun) Names(client.StoreSection) ([]string, error) { return []string{"a"}, nil }

// What comes from the store is marked until a server speaks of it.
//
// spec: LKG-4
func TestStale(t *testing.T) {
	r := &rig{TB: t, srv: testutil.NewServer()}
	defer r.srv.Close()
	r.srv.SetRefuse(true)
	boot, err := bootstrap.Server(r.srv.Target())
	r.must(err)
	r.c, err = client.New(client.Config{
		Bootstrap: boot, Store: lastRun{r.srv.Target()}, GRPC: transport.GRPCConfig{DialOptions: r.srv.DialOptions()},
	})
	r.must(err)
	defer r.c.Close()
	r.pages = http.StripPrefix("/debug", statuspage.New(r.c, statuspage.Config{}))
	events := make(chan client.Event[any], 10)
	_, err = r.c.Watch(context.Background(), cds.Type, "a", func(ev client.Event[any]) { events <- ev })
	r.must(err)
	for ev := range events {
		if ev.Kind == client.EventUpdated {
			break
		}
	}
	for page, want := range map[string]string{
		"resources":                    "stale: of the store",
		"resource?type=Cluster&name=a": "no server has spoken of it",
		"resources?format=json":        `"stale":true`,
	} {
		if got := r.get(page).Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q:\n%s", page, want, got)
		}
	}
}
