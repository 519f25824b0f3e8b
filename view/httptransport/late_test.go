package httptransport

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/route"
)

// A request that was routed by a snapshot gets its cluster, and the members of that, although newer
// snapshots do not have them any more.
//
// spec: VIEW-14
func TestRoutedBefore(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "here") }))
	defer server.Close()
	at := viewtest.At(uint32(server.Listener.Addr().(*net.TCPAddr).Port))
	clusters := []proto.Message{
		viewtest.Cluster("a"), viewtest.Assignment("a", at), viewtest.Aggregate(t, "all", "b"), viewtest.Cluster("b"), viewtest.Assignment("b", at),
	}
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`, `{match: {path: /a}, route: {cluster: a}}`, `{match: {path: /all}, route: {cluster: all}}`), clusters...)...)
	boot, err := bootstrap.Server(m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := view.New(t.Context(), c, view.Root{Type: view.RootListener, Name: "listener"}, view.Config{})
	if err != nil {
		t.Fatal(err)
	}
	transport := New(v, Config{})
	defer transport.Close()
	if err := v.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	old := transport.current()
	viewtest.Set(t, m, "2", append(viewtest.Listener(t, `"*"`, `{match: {path: /a}, direct_response: {status: 204}}`), clusters...)...)
	for s := range v.Snapshots(ctx) {
		if s.Len() == 0 {
			break
		}
	}
	// The first holds its clusters, which newer snapshots then have without knowing anything of them.
	for i, path := range []string{"/a", "/a", "/all", "/all"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.com"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := route.FromHTTP(r)
		found, err := old.table.Match(&req)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.forward(r, &req, old, found)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		defer resp.Body.Close()
		if i%2 == 0 {
			for s := range v.Snapshots(ctx) {
				if s.Len() > i/2 {
					break
				}
			}
		}
	}
}
