package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/xdswatch/xdswatch/internal/viewtest"
)

// What the proxy does is reported to the management server.
func TestLoadIsReported(t *testing.T) {
	loads := viewtest.NewLoads()
	m := viewtest.Management(t, loads.Option())
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer backend.Close()
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`, `{match: {prefix: /}, route: {cluster: a}}`),
		viewtest.Reported(viewtest.Cluster("a")), viewtest.Assignment("a", viewtest.At(uint32(backend.Listener.Addr().(*net.TCPAddr).Port))))...)
	c := viewtest.Client(t, m)
	r := loads.Reporter(t, c)
	_, front := serve(t, c, r)
	loads.Await(t)
	for path, n := range map[string]int{"/works": 4, "/fails": 2} {
		for range n {
			resp, err := front.Client().Get(front.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	front.Close() // the handlers have returned
	r.Close()
	if got, want := loads.Of("a"), (viewtest.Load{Issued: 6, Succeeded: 4, Failed: 2, Localities: "here"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
