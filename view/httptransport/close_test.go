package httptransport

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view"
)

// givenBody is a request's body that says when it is closed.
type givenBody struct{ closed chan struct{} }

func (b *givenBody) Read([]byte) (int, error) { return 0, io.EOF }

func (b *givenBody) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	return nil
}

// refuse wants a request to be refused, and its body closed.
func refuse(t *testing.T, transport http.RoundTripper, r *http.Request, status int, why string) {
	t.Helper()
	body := &givenBody{make(chan struct{})}
	r.Body = body
	resp, err := transport.RoundTrip(r)
	if resp != nil {
		resp.Body.Close()
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != status || e.Error() != why {
		t.Errorf("got %v, want %d and %q", err, status, why)
	}
	select {
	case <-body.closed:
	case <-time.After(10 * time.Second):
		t.Error("the request's body is open")
	}
}

// A closed transport sends nothing. A request that was sent goes on, one that waits for its cluster ends.
func TestClosed(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	proceed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-proceed
		io.WriteString(w, "whole")
	}))
	defer server.Close()
	at := viewtest.At(uint32(server.Listener.Addr().(*net.TCPAddr).Port))
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`, `{match: {path: /a}, route: {cluster: a}}`, `{match: {prefix: /}, route: {cluster_header: x}}`),
		viewtest.Cluster("a"), viewtest.Assignment("a", at))...)
	c := viewtest.Client(t, m)
	asked := make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	v, err := view.New(t.Context(), c, view.Root{Type: view.RootListener, Name: "listener"}, view.Config{OnWaiting: func(_ view.Root, ws []view.Waiting) {
		if slices.ContainsFunc(ws, func(w view.Waiting) bool { return w.Name == "late" }) {
			ask()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	transport := New(v, Config{OnDemand: true})
	request := func(path string) *http.Request {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("x", "late")
		return r
	}
	refuse(t, transport, &http.Request{Header: http.Header{}}, http.StatusBadRequest, "the request has no URL")
	running, err := transport.RoundTrip(request("/a"))
	if err != nil {
		t.Fatal(err)
	}
	nothing, err := view.New(t.Context(), c, view.Root{Type: view.RootListener, Name: "unknown"}, view.Config{})
	if err != nil {
		t.Fatal(err)
	}
	early := New(nothing, Config{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		refuse(t, transport, request("/demand"), http.StatusServiceUnavailable, "the transport is closed")
	})
	waiting.Go(func() { refuse(t, early, request("/"), http.StatusServiceUnavailable, "the transport is closed") })
	select {
	case <-asked:
	case <-ctx.Done():
		t.Fatal("no request waits for its cluster")
	}
	early.Close()
	transport.Close()
	waiting.Wait()
	refuse(t, transport, request("/a"), http.StatusServiceUnavailable, "the transport is closed")
	refuse(t, transport, &http.Request{}, http.StatusServiceUnavailable, "the transport is closed")
	close(proceed)
	if text, err := io.ReadAll(running.Body); err != nil || string(text) != "whole" {
		t.Errorf("the request that ran got %q, %v", text, err)
	}
	running.Body.Close()

	// A request that was let in just before leaves nothing behind.
	transport.clusters.Delete("a")
	if a := transport.cluster(v.Snapshot().Cluster("a")); !a.retired.Load() {
		t.Error("a cluster is kept that was used first when the transport was closed")
	}
}
