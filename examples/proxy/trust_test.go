package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/viewtest"
)

// An endpoint names the host of requests only if a trusted server sent the route that says so.
//
// spec: VIEW-65
func TestAutoHostRewriteNeedsTrust(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) }))
	defer backend.Close()
	named := viewtest.At(uint32(backend.Listener.Addr().(*net.TCPAddr).Port))
	named.LbEndpoints[0].GetEndpoint().Hostname = "own.example"
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`, `{match: {prefix: /}, route: {cluster: a, auto_host_rewrite: true}}`),
		viewtest.Cluster("a"), viewtest.Assignment("a", named))...)
	for trusted, want := range map[bool]string{false: "front.example", true: "own.example"} {
		boot, err := bootstrap.Server(m.Addr())
		if err != nil {
			t.Fatal(err)
		}
		boot.Servers[0].Features.TrustedXDSServer = trusted
		c, err := client.New(client.Config{Bootstrap: boot})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, front := serve(t, c, nil)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "front.example"
		resp, err := front.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != want {
			t.Errorf("with a trusted server %v: the host is %q, want %q", trusted, got, want)
		}
	}
}
