package testutil

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/xdswatch/xdswatch/internal/handover"
)

// restClient polls a server in memory.
func restClient(t *testing.T, cfg RESTConfig) (*RESTServer, func(path, body string) (int, string)) {
	t.Helper()
	lis := handover.Memory()
	cfg.Listener = lis
	s := StartRESTServer(t, cfg)
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return lis.Dial(ctx) }}
	t.Cleanup(tr.CloseIdleConnections)
	return s, func(path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://memory"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		// protojson puts spaces where it likes.
		return resp.StatusCode, strings.ReplaceAll(strings.TrimSpace(string(got)), " ", "")
	}
}

func TestRESTServer(t *testing.T) {
	const endpoints = "/v3/discovery:endpoints"
	synctest.Test(t, func(t *testing.T) {
		s, poll := restClient(t, RESTConfig{})
		want := func(path, body string, code int, text string) {
			t.Helper()
			if gotCode, got := poll(path, body); gotCode != code || !strings.Contains(got, text) {
				t.Errorf("%s %s: %d %s; want %d and %q", path, body, gotCode, got, code, text)
			}
		}
		want(endpoints, `{}`, 500, "")
		set := func(version string) {
			t.Helper()
			err := s.Set(version, &endpointv3.ClusterLoadAssignment{ClusterName: "a"}, &endpointv3.ClusterLoadAssignment{ClusterName: "b"})
			if err != nil {
				t.Fatal(err)
			}
		}
		set("1")
		want("/v3/discovery:other", `{}`, 404, "")
		want(endpoints, `broken`, 400, "")
		want(endpoints, `{"resourceNames":["a"]}`, 200, `"version_info":"1"`)
		want(endpoints, `{"resourceNames":["b"]}`, 200, `"cluster_name":"b"`)
		want(endpoints, `{"resource_names":["b"],"version_info":"1"}`, 304, "")
		want(endpoints, `{"resource_names":["a"],"version_info":"1"}`, 200, `"a"`)
		s.Answer(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "ServiceUnavailable", http.StatusServiceUnavailable)
		})
		want(endpoints, `{}`, 503, "ServiceUnavailable")
		s.Answer(nil)
		want(endpoints, `{}`, 200, `"b"`)

		if n := s.Polls(); n != 9 {
			t.Errorf("%d polls, want 9", n)
		}
		for i, names := range []string{"", "", "", "a", "b"} {
			p, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(p.Request.GetResourceNames(), " "); got != names {
				t.Errorf("poll %d is for %q, want %q", i, got, names)
			}
		}
	})
}

// A poll with nothing new is held back until there is, or for as long as was said.
func TestRESTServerHold(t *testing.T) {
	const clusters = "/v3/discovery:clusters"
	synctest.Test(t, func(t *testing.T) {
		s, poll := restClient(t, RESTConfig{Hold: time.Minute, ByVersion: true})
		set := func(version string) {
			if err := s.Set(version, cluster("a")); err != nil {
				t.Error(err)
			}
		}
		set("1")
		begin := time.Now()
		if code, _ := poll(clusters, `{"version_info":"1"}`); code != 304 || time.Since(begin) != time.Minute {
			t.Errorf("%d after %v, want 304 after a minute", code, time.Since(begin))
		}
		begin = time.Now()
		time.AfterFunc(time.Second, func() { set("2") })
		code, body := poll(clusters, `{"version_info":"1"}`)
		if code != 200 || !strings.Contains(body, `"version_info":"2"`) || time.Since(begin) != time.Second {
			t.Errorf("%d %s after %v, want version 2 after a second", code, body, time.Since(begin))
		}
	})
}

// Idle connections are closed, and those that a poll is on are not.
func TestRESTServerCloseIdle(t *testing.T) {
	const clusters = "/v3/discovery:clusters"
	synctest.Test(t, func(t *testing.T) {
		s, poll := restClient(t, RESTConfig{Hold: time.Minute, ByVersion: true})
		must(t, s.Set("1", cluster("a")))
		time.AfterFunc(time.Second, s.CloseIdle)
		if code, _ := poll(clusters, `{"version_info":"1"}`); code != 304 {
			t.Errorf("a poll that was held back got %d, want 304", code)
		}
		synctest.Wait()
		if n := s.Connections(); n != 1 {
			t.Errorf("%d connections are open, want 1", n)
		}
		s.CloseIdle()
		synctest.Wait()
		if n := s.Connections(); n != 0 {
			t.Errorf("%d connections are open, want none", n)
		}
	})
}

func TestRESTServerTypes(t *testing.T) {
	s := StartRESTServer(t, RESTConfig{})
	for _, r := range everyType() {
		_, hasNone := r.(*routev3.VirtualHost)
		if err := s.Set("1", r); errors.Is(err, ErrUnsupportedType) != hasNone || err != nil != hasNone {
			t.Errorf("%T: %v", r, err)
		}
	}
}

// The snapshot cache has one more type without a path, whose messages are in another module.
func TestRESTServerRateLimits(t *testing.T) {
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("rls.proto"), Package: proto.String("ratelimit.config.ratelimit.v3"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("RateLimitConfig")}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := StartRESTServer(t, RESTConfig{})
	if err := s.Set("1", dynamicpb.NewMessage(file.Messages().Get(0))); !errors.Is(err, ErrUnsupportedType) {
		t.Errorf("got %v, want %v", err, ErrUnsupportedType)
	}
}
