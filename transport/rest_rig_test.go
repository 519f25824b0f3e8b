package transport_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/handover"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

const clusterURL = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// polled is a server of a bootstrap that is polled each minute, without TLS.
func polled(addrs ...string) bootstrap.ManagementServer {
	s := insecure("rest-server")
	s.PerType = true
	s.Carrier = &bootstrap.REST{RefreshDelay: time.Minute}
	for _, addr := range addrs {
		s.REST().Endpoints = append(s.REST().Endpoints, bootstrap.RESTEndpoint{Address: addr})
	}
	return s
}

func buildREST(t testing.TB, config transport.RESTConfig, s bootstrap.ManagementServer) transport.Conn {
	t.Helper()
	c, err := transport.NewREST(config).Build(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// patience is longer than any poll may be away.
const patience = 3 * time.Minute

// restRig is a stream to a server, with what it received.
type restRig struct {
	t      *testing.T
	srv    *testutil.RESTServer
	conn   transport.Conn
	stream transport.Stream
	frames chan *discoveryv3.DiscoveryResponse
	end    chan error
}

// inRESTBubble runs a test in fake time with a server in memory.
func inRESTBubble(t *testing.T, test func(*restRig), change ...func(*testutil.RESTConfig, *bootstrap.ManagementServer)) {
	synctest.Test(t, func(t *testing.T) {
		lis := handover.Memory()
		sc, ms := testutil.RESTConfig{Listener: lis}, polled("memory:1")
		for _, f := range change {
			f(&sc, &ms)
		}
		srv := testutil.StartRESTServer(t, sc)
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return lis.Dial(ctx) }
		r := &restRig{t: t, srv: srv, conn: buildREST(t, transport.RESTConfig{Dial: dial}, ms)}
		r.open()
		test(r)
	})
}

// open begins a stream and reads it until its end.
func (r *restRig) open() {
	r.t.Helper()
	s, err := r.conn.Open(r.t.Context(), "")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Close)
	r.read(s)
}

func (r *restRig) read(s transport.Stream) {
	frames, end := make(chan *discoveryv3.DiscoveryResponse, 100), make(chan error, 1)
	r.stream, r.frames, r.end = s, frames, end
	go func() {
		for {
			f, err := s.Recv()
			if err != nil {
				end <- err
				return
			}
			resp := new(discoveryv3.DiscoveryResponse)
			if err := proto.Unmarshal(f.Parts[0], resp); err != nil {
				end <- err
				return
			}
			f.Free()
			frames <- resp
		}
	}()
}

func (r *restRig) send(req *discoveryv3.DiscoveryRequest) {
	r.t.Helper()
	if req.TypeUrl == "" {
		req.TypeUrl = clusterURL
	}
	b, err := proto.Marshal(req)
	if err == nil {
		err = r.stream.Send(b)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// ask sends a request for names with the version accepted last.
func (r *restRig) ask(version string, names ...string) {
	r.t.Helper()
	r.send(&discoveryv3.DiscoveryRequest{VersionInfo: version, ResourceNames: names})
}

// poll waits for the next poll and checks what it asks: names, version and error.
func (r *restRig) poll(want string) *testutil.RESTPoll {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	p, err := r.srv.Next(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	got := strings.Join(p.Request.GetResourceNames(), " ") + " @" + p.Request.GetVersionInfo()
	if detail := p.Request.GetErrorDetail(); detail != nil {
		got += " error=" + detail.GetMessage()
	}
	if got != want {
		r.t.Fatalf("the poll asks %q, want %q", got, want)
	}
	return p
}

// frame waits for the next response and checks its version and names.
func (r *restRig) frame(want string) *discoveryv3.DiscoveryResponse {
	r.t.Helper()
	select {
	case resp := <-r.frames:
		if got := describeResponse(r.t, resp); got != want {
			r.t.Fatalf("received %q, want %q", got, want)
		}
		return resp
	case err := <-r.end:
		r.t.Fatalf("the stream ended: %v; want %q", err, want)
	case <-time.After(patience):
		r.t.Fatalf("nothing received; want %q", want)
	}
	return nil
}

// quiet checks that neither a poll nor a response comes for a while of fake time.
func (r *restRig) quiet(d time.Duration) {
	r.t.Helper()
	polls := r.srv.Polls()
	time.Sleep(d)
	synctest.Wait()
	if n := r.srv.Polls() - polls; n > 0 {
		r.t.Fatalf("%d polls within %v, want none", n, d)
	}
	r.nothing()
}

func (r *restRig) nothing() {
	r.t.Helper()
	select {
	case resp := <-r.frames:
		r.t.Fatalf("received %v, want nothing", resp)
	case err := <-r.end:
		r.t.Fatalf("the stream ended: %v", err)
	default:
	}
}

func (r *restRig) set(version string, names ...string) {
	r.t.Helper()
	var resources []proto.Message
	for _, name := range names {
		resources = append(resources, &clusterv3.Cluster{Name: name})
	}
	if err := r.srv.Set(version, resources...); err != nil {
		r.t.Fatal(err)
	}
}

func describeResponse(t testing.TB, resp *discoveryv3.DiscoveryResponse) string {
	t.Helper()
	names := []string{resp.GetVersionInfo() + ":"}
	for _, a := range resp.GetResources() {
		m, err := a.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, m.(interface{ GetName() string }).GetName())
	}
	return strings.Join(names, " ")
}
