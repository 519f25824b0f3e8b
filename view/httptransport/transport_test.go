package httptransport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/circuit"
	"github.com/xdswatch/xdswatch/view/httptransport"
)

func newTransport(t *testing.T, m *testutil.ManagementServer, config httptransport.Config) (*http.Client, *view.View) {
	t.Helper()
	v, err := view.New(t.Context(), viewtest.Client(t, m), view.Root{Type: view.RootListener, Name: "listener"}, view.Config{})
	if err != nil {
		t.Fatal(err)
	}
	transport := httptransport.New(v, config)
	t.Cleanup(transport.Close)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, v
}

// backend is a server that answers with its name, the host and the path. It knows its connections.
type backend struct {
	*httptest.Server
	port  uint32
	holds chan struct{} // requests to /wait wait for it

	mu    sync.Mutex
	conns map[net.Conn]http.ConnState
	news  chan struct{} // has room for one; filled when a connection changes
}

func newBackend(t *testing.T, name string) *backend {
	b := &backend{holds: make(chan struct{}), conns: map[net.Conn]http.ConnState{}, news: make(chan struct{}, 1)}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/wait" {
			w.(http.Flusher).Flush()
			<-b.holds
		}
		fmt.Fprintf(w, "%s %s %s", name, r.Host, r.URL.EscapedPath())
	}))
	b.Config.ConnState = func(c net.Conn, s http.ConnState) {
		b.mu.Lock()
		b.conns[c] = s
		b.mu.Unlock()
		select {
		case b.news <- struct{}{}:
		default:
		}
	}
	b.Start()
	t.Cleanup(b.Close)
	b.port = uint32(b.Listener.Addr().(*net.TCPAddr).Port)
	return b
}

// await waits until the connections of the backend are in these states.
func (b *backend) await(t *testing.T, want ...http.ConnState) {
	t.Helper()
	ctx := viewtest.Patience(t)
	for {
		b.mu.Lock()
		var got []http.ConnState
		for _, s := range b.conns {
			if s != http.StateClosed {
				got = append(got, s)
			}
		}
		b.mu.Unlock()
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-b.news:
		case <-ctx.Done():
			t.Fatalf("the connections are %v, want %v", got, want)
		}
	}
}

func get(c *http.Client, url string, header ...string) (status int, text string, err error) {
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return 0, "", err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("Location") + string(body), err
}

// single is a configuration of one cluster with one endpoint.
func single(t *testing.T, name string, port uint32, more ...proto.Message) []proto.Message {
	return append(viewtest.Listener(t, `"*"`, `{match: {prefix: /}, route: {cluster: `+name+`}}`),
		append(more, viewtest.Cluster(name), viewtest.Assignment(name, viewtest.At(port)))...)
}

func TestRoutes(t *testing.T) {
	m := viewtest.Complete(t)
	a, b := newBackend(t, "a"), newBackend(t, "b")
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, "example.com, gone.example",
		`{match: {prefix: /b/}, route: {cluster: b, prefix_rewrite: "/x%2Fy/", host_rewrite_literal: other.example}}`,
		`{match: {prefix: /part/}, route: {cluster: b, prefix_rewrite: "/100%/"}}`,
		`{match: {prefix: /old}, redirect: {path_redirect: /new, response_code: FOUND}}`,
		`{match: {prefix: /denied}, direct_response: {status: 403, body: {inline_string: denied}}}`,
		`{match: {prefix: /all}, route: {cluster: all}}`,
		`{match: {prefix: /missing}, route: {cluster: missing}}`,
		`{match: {prefix: /empty}, route: {cluster: empty}}`,
		`{match: {prefix: /demand}, route: {cluster_header: x-cluster}}`,
		`{match: {prefix: /fault, headers: [{name: h, safe_regex_match: {regex: "("}}]}, route: {cluster: a}}`,
		`{match: {path: /}, route: {cluster: a}}`,
		`{match: {prefix: /a}, route: {cluster: a}}`),
		viewtest.Cluster("a"), viewtest.Cluster("b"), viewtest.Cluster("empty"), viewtest.Aggregate(t, "all", "empty", "b"), viewtest.Cluster("demanded"),
		viewtest.Assignment("a", viewtest.At(a.port)), viewtest.Assignment("b", viewtest.At(b.port)),
		viewtest.Assignment("empty"), viewtest.Assignment("demanded", viewtest.At(b.port)))...)
	c, _ := newTransport(t, m, httptransport.Config{OnDemand: true})
	strict, _ := newTransport(t, m, httptransport.Config{})

	for _, tt := range []struct {
		url    string
		header []string
		status int
		want   string
	}{
		{"http://example.com/a/1?q", nil, 200, "a example.com /a/1"},
		{"http://example.com", nil, 200, "a example.com /"},
		{"http://example.com?q", nil, 200, "a example.com /"},
		{"http://example.com/b/1", nil, 200, "b other.example /x%2Fy/1"},
		{"http://example.com/part/%2F", nil, 200, "b example.com /100%25/%2F"},
		{"http://example.com/old?q", nil, 302, "http://example.com/new?q"},
		{"http://example.com/denied", nil, 403, "denied"},
		{"http://example.com/all", nil, 200, "b example.com /all"},
		{"http://example.com/demand", []string{"X-Cluster", "demanded"}, 200, "b example.com /demand"},
	} {
		status, text, err := get(c, tt.url, tt.header...)
		if err != nil || status != tt.status || text != tt.want {
			t.Errorf("%s: %d %q, %v; want %d %q", tt.url, status, text, err, tt.status, tt.want)
		}
	}
	for _, tt := range []struct {
		client *http.Client
		url    string
		header []string
		status int
		want   string
	}{
		{c, "http:example.com/a/", nil, 400, "opaque"},
		{c, "http://nobody.example/", nil, 404, "no virtual host matches the request's host"},
		{c, "http://example.com/nowhere", nil, 404, "no route of the virtual host matches the request"},
		{c, "http://example.com/fault", nil, 500, "missing closing )"},
		{c, "http://example.com/missing", nil, 503, `"missing"`},
		{c, "http://example.com/empty", nil, 503, `cluster "empty"`},
		{c, "http://example.com/demand", nil, 503, "the request does not name its cluster"},
		{c, "http://example.com/demand", []string{"X-Cluster", "nobody"}, 503, `"nobody"`},
		{strict, "http://example.com/demand", []string{"X-Cluster", "demanded"}, 503, `there is no cluster "demanded"`},
	} {
		t.Run(fmt.Sprint(tt.url, tt.header), func(t *testing.T) {
			t.Parallel()
			_, _, err := get(tt.client, tt.url, tt.header...)
			var e *httptransport.Error
			if !errors.As(err, &e) || e.Status != tt.status || !strings.Contains(e.Error(), tt.want) {
				t.Errorf("the error is %v, want %d and %q", err, tt.status, tt.want)
			}
		})
	}
}

// A cluster that routes do not name any more stays while its request runs.
//
// spec: VIEW-14
func TestRunningRequestHoldsItsCluster(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	a, b := newBackend(t, "a"), newBackend(t, "b")
	viewtest.Set(t, m, "1", single(t, "a", a.port)...)
	c, v := newTransport(t, m, httptransport.Config{})
	resp, err := c.Get("http://example.com/wait")
	if err != nil {
		t.Fatal(err)
	}
	viewtest.Set(t, m, "2", single(t, "b", b.port)...)
	until := func(ok func(*view.Snapshot) bool) {
		t.Helper()
		for s := range v.Snapshots(ctx) {
			if ok(s) {
				return
			}
		}
		t.Fatal("the view did not come to it")
	}
	until(func(s *view.Snapshot) bool { return s.Cluster("b") != nil && s.Cluster("b").Endpoints != nil })
	if held := v.Snapshot().Cluster("a"); held == nil || !slices.Equal(held.ReferencedBy(), []string{"hold"}) {
		t.Errorf("the cluster of the running request is %+v", held)
	}
	close(a.holds)
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "a example.com /wait" {
		t.Errorf("the response is %q, %v", text, err)
	}
	if v.Snapshot().Cluster("a") == nil {
		t.Error("the cluster went before the body was closed")
	}
	resp.Body.Close()
	until(func(s *view.Snapshot) bool { return s.Cluster("a") == nil })
}

// Whatever requests and pushes did to each other, no hold is left over.
func TestNoHoldIsLeftOver(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	a := newBackend(t, "a")
	viewtest.Set(t, m, "0", single(t, "c0", a.port)...)
	c, v := newTransport(t, m, httptransport.Config{})
	over := make(chan struct{})
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if _, _, err := get(c, "http://example.com/"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	const pushes = 40
	for i := 1; i <= pushes; i++ {
		name := fmt.Sprint("c", i%7)
		viewtest.Set(t, m, fmt.Sprint(i), single(t, name, a.port)...)
		for s := range v.Snapshots(ctx) {
			if found := s.Cluster(name); found != nil && slices.Contains(found.ReferencedBy(), "route") {
				break
			}
		}
	}
	close(over)
	work.Wait()
	for s := range v.Snapshots(ctx) {
		if s.Len() == 1 {
			return
		}
	}
	t.Errorf("in the end there is %+v", v.Dump().Watched)
}

// Connections to an endpoint that has left are closed when they are idle, and not before.
func TestConnectionsAreDrained(t *testing.T) {
	m := viewtest.Management(t)
	a, b := newBackend(t, "a"), newBackend(t, "b")
	viewtest.Set(t, m, "1", single(t, "backend", a.port)...)
	c, _ := newTransport(t, m, httptransport.Config{})
	running, err := c.Get("http://example.com/wait")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(c, "http://example.com/"); err != nil {
		t.Fatal(err)
	}
	a.await(t, http.StateActive, http.StateIdle)

	viewtest.Set(t, m, "2", single(t, "backend", b.port)...)
	a.await(t, http.StateActive)
	if _, text, err := get(c, "http://example.com/"); text != "b example.com /" {
		t.Errorf("the response is %q, %v", text, err)
	}
	close(a.holds)
	if text, err := io.ReadAll(running.Body); err != nil || string(text) != "a example.com /wait" {
		t.Errorf("the response is %q, %v", text, err)
	}
	running.Body.Close()
	a.await(t)
	b.await(t, http.StateIdle)

	// And all of a cluster that is gone.
	viewtest.Set(t, m, "3", single(t, "other", a.port)...)
	b.await(t)
}

func TestCloseDrainsAll(t *testing.T) {
	m := viewtest.Management(t)
	a := newBackend(t, "a")
	viewtest.Set(t, m, "1", single(t, "a", a.port)...)
	c, _ := newTransport(t, m, httptransport.Config{})
	for _, end := range []func(){c.CloseIdleConnections, c.Transport.(*httptransport.Transport).Close} {
		if _, _, err := get(c, "http://example.com/"); err != nil {
			t.Fatal(err)
		}
		a.await(t, http.StateIdle)
		end()
		a.await(t)
	}
}

// Transports that share breakers share the limit; it is the cluster's, whoever has a view of it.
//
// spec: VIEW-66
func TestMaxRequests(t *testing.T) {
	m := viewtest.Management(t)
	a := newBackend(t, "a")
	all := single(t, "a", a.port)
	all[len(all)-2].(*clusterv3.Cluster).CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{
		{Priority: corev3.RoutingPriority_HIGH, MaxRequests: wrapperspb.UInt32(9)}, {MaxRequests: wrapperspb.UInt32(1)},
	}}
	viewtest.Set(t, m, "1", all...)
	shared := &circuit.Breakers{}
	c, _ := newTransport(t, m, httptransport.Config{Breakers: shared})
	sharing, _ := newTransport(t, m, httptransport.Config{Breakers: shared})
	alone, _ := newTransport(t, m, httptransport.Config{})
	running, err := c.Get("http://example.com/wait")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*http.Client{c, sharing} {
		if _, _, err := get(c, "http://example.com/"); err == nil || !strings.Contains(err.Error(), `cluster "a" has 1 requests at a time already (max_requests)`) {
			t.Errorf("a second request ended with %v", err)
		}
	}
	if _, _, err := get(alone, "http://example.com/"); err != nil {
		t.Errorf("with other breakers: %v", err)
	}
	close(a.holds)
	running.Body.Close()
	if _, _, err := get(c, "http://example.com/"); err != nil {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	m := viewtest.Management(t)
	a := newBackend(t, "a")
	defer close(a.holds)
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`, `{match: {prefix: /}, route: {cluster: a, timeout: 0.05s}}`),
		viewtest.Cluster("a"), viewtest.Assignment("a", viewtest.At(a.port)))...)
	c, _ := newTransport(t, m, httptransport.Config{})
	if _, _, err := get(c, "http://example.com/wait"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the request ended with %v", err)
	}
	// The time of sending the request does not count, as in RouteAction.timeout.
	for path, want := range map[string]error{"/": nil, "/wait": context.DeadlineExceeded} {
		for _, again := range []func() (io.ReadCloser, error){nil, func() (io.ReadCloser, error) { return &slow{left: 3}, nil }} {
			r, err := http.NewRequest("POST", "http://example.com"+path, &slow{left: 3})
			if err != nil {
				t.Fatal(err)
			}
			r.GetBody = again
			resp, err := c.Do(r)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: the slow request ended with %v, want %v", path, err, want)
			}
		}
	}
}

// slow is a body that takes longer than the timeout.
type slow struct{ left int }

func (s *slow) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	s.left--
	time.Sleep(30 * time.Millisecond)
	return copy(b, "x"), nil
}

func (s *slow) Close() error { return nil }

// A cluster that asks for TLS never gets plain text.
func TestTLS(t *testing.T) {
	m := viewtest.Management(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "safe") }))
	t.Cleanup(server.Close)
	all := single(t, "a", uint32(server.Listener.Addr().(*net.TCPAddr).Port))
	all[len(all)-2].(*clusterv3.Cluster).TransportSocket = &corev3.TransportSocket{Name: "tls"}
	viewtest.Set(t, m, "1", all...)
	plain, _ := newTransport(t, m, httptransport.Config{})
	if _, _, err := get(plain, "http://example.com/"); err == nil || !strings.Contains(err.Error(), `cluster "a" has a transport socket (tls), and httptransport.Config.Base is not set`) {
		t.Errorf("the request ended with %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	safe, _ := newTransport(t, m, httptransport.Config{Base: func(c *view.Cluster) (*http.Transport, error) {
		if c.Message.GetTransportSocket().GetName() != "tls" {
			return nil, errors.New("another cluster")
		}
		return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}, nil
	}})
	if _, text, err := get(safe, "http://example.com/"); err != nil || text != "safe" {
		t.Errorf("%q, %v", text, err)
	}
}

// The first request waits for the configuration, and not longer than it wants to.
func TestFirstRequestWaits(t *testing.T) {
	m := viewtest.Management(t)
	c, _ := newTransport(t, m, httptransport.Config{})
	c.Timeout = 50 * time.Millisecond
	if _, _, err := get(c, "http://example.com/"); err == nil {
		t.Error("there was a response without configuration")
	}
	c.Timeout = 0
	a := newBackend(t, "a")
	answered := make(chan error, 1)
	go func() {
		_, _, err := get(c, "http://example.com/")
		answered <- err
	}()
	viewtest.Set(t, m, "1", single(t, "a", a.port)...)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A request to an aggregate is sent as the leaf says, within the leaf's limit.
//
// spec: VIEW-34
func TestLeafSaysHow(t *testing.T) {
	m := viewtest.Management(t)
	a := newBackend(t, "a")
	answer := sync.OnceFunc(func() { close(a.holds) })
	t.Cleanup(answer) // the backend ends after its requests
	all, leaf := viewtest.Aggregate(t, "all", "leaf"), viewtest.Cluster("leaf")
	limit := func(n uint32) *clusterv3.CircuitBreakers {
		return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(n)}}}
	}
	all.TransportSocket, all.CircuitBreakers = &corev3.TransportSocket{Name: "tls"}, limit(1)
	leaf.CircuitBreakers = limit(2)
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`, `{match: {prefix: /}, route: {cluster: all}}`), all, leaf, viewtest.Assignment("leaf", viewtest.At(a.port)))...)
	c, _ := newTransport(t, m, httptransport.Config{})
	for range 2 {
		resp, err := c.Get("http://example.com/wait")
		if err != nil {
			t.Fatalf("what is said of the aggregate was applied: %v", err)
		}
		defer resp.Body.Close()
	}
	if _, _, err := get(c, "http://example.com/"); err == nil || !strings.Contains(err.Error(), `cluster "leaf" has 2 requests at a time already`) {
		t.Errorf("a request over the leaf's limit ended with %v", err)
	}
	answer()

	secure := viewtest.Cluster("leaf")
	secure.TransportSocket = &corev3.TransportSocket{Name: "mtls"}
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`, `{match: {prefix: /}, route: {cluster: all}}`), viewtest.Aggregate(t, "all", "leaf"), secure, viewtest.Assignment("leaf", viewtest.At(a.port)))...)
	c, _ = newTransport(t, m, httptransport.Config{})
	if _, _, err := get(c, "http://example.com/"); err == nil || !strings.Contains(err.Error(), `cluster "leaf" has a transport socket (mtls)`) {
		t.Errorf("a request to a leaf with a transport socket ended with %v", err)
	}
}

// A proxy whose listener was removed finishes what its clients have begun: the transport goes on by the last snapshot.
func TestViewHasEnded(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	a := newBackend(t, "a")
	viewtest.Set(t, m, "1", single(t, "backend", a.port)...)
	c, v := newTransport(t, m, httptransport.Config{})
	if err := v.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	v.Stop()
	<-v.Done()
	if status, text, err := get(c, "http://example.com/x"); status != http.StatusOK || !strings.HasPrefix(text, "a ") {
		t.Errorf("%d %q %v", status, text, err)
	}
}
