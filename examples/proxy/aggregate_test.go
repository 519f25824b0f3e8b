package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/xdswatch/xdswatch/internal/viewtest"
)

// An aggregate's requests go to its first leaf that has a healthy endpoint, one of an aggregate on
// demand too.
//
// spec: VIEW-31, VIEW-33
func TestAggregates(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Complete(t)
	backend := func(status int) uint32 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(s.Close)
		return uint32(s.Listener.Addr().(*net.TCPAddr).Port)
	}
	one, two := viewtest.At(backend(201)), viewtest.At(backend(202))
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`,
		`{match: {path: /named}, route: {cluster_header: x-cluster}}`,
		`{match: {prefix: /none}, route: {cluster: none}}`,
		`{match: {prefix: /}, route: {cluster: all}}`),
		viewtest.Aggregate(t, "all", "missing", "empty", "one", "two"), viewtest.Aggregate(t, "none", "missing", "empty"),
		viewtest.Aggregate(t, "wanted", "empty", "two"),
		viewtest.Cluster("empty"), viewtest.Cluster("one"), viewtest.Cluster("two"),
		viewtest.Assignment("empty"), viewtest.Assignment("one", one), viewtest.Assignment("two", two))...)
	_, front := serve(t, viewtest.Client(t, m), nil)
	for path, want := range map[string]int{"/": 201, "/none": 503, "/named": 202} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Cluster", "wanted")
		resp, err := front.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
}
