package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// manyClusters is the JSON of a response with 10,000 clusters.
func manyClusters(b *testing.B) string {
	b.Helper()
	var all []proto.Message
	for i := range 10_000 {
		all = append(all, &clusterv3.Cluster{Name: fmt.Sprintf("cluster-%d", i), ConnectTimeout: durationpb.New(5 * time.Second)})
	}
	body, err := protojson.Marshal(testutil.SotW(clusterURL, "1", "", all...))
	if err != nil {
		b.Fatal(err)
	}
	return string(body)
}

// BenchmarkPoll is the cost of polls that bring nothing new of 10,000 clusters, over loopback
// TCP and with the server's share: by a 304, and by the same body again. Beside each is the
// bare HTTP exchange.
func BenchmarkPoll(b *testing.B) {
	body := manyClusters(b)
	for name, again := range map[string]http.HandlerFunc{
		"304":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
		"same": answerBody("application/json", body),
	} {
		b.Run(name+"/exchange", func(b *testing.B) {
			srv := httptest.NewServer(again)
			defer srv.Close()
			b.ReportAllocs()
			for b.Loop() {
				resp, err := http.Post(srv.URL, "application/json", strings.NewReader("{}"))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadAll(resp.Body); err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
		b.Run(name+"/stream", func(b *testing.B) {
			polls, first := make(chan struct{}), true
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if first {
					first = false
					answerBody("application/json", body)(w, req)
					return
				}
				select {
				case polls <- struct{}{}:
				case <-req.Context().Done():
				}
				again(w, req)
			}))
			defer srv.Close()
			ms := polled(strings.TrimPrefix(srv.URL, "http://"))
			ms.REST().RefreshDelay, ms.REST().RequestTimeout = 1, time.Minute
			s, err := buildREST(b, transport.RESTConfig{}, ms).Open(b.Context(), "")
			if err != nil {
				b.Fatal(err)
			}
			ended := make(chan struct{})
			defer func() { <-ended }()
			defer s.Close()
			ask := func(version string) {
				req, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: clusterURL, VersionInfo: version})
				if err == nil {
					err = s.Send(req)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			ask("")
			if _, err := s.Recv(); err != nil {
				b.Fatal(err)
			}
			ask("1")
			go func() {
				defer close(ended)
				_, _ = s.Recv() // brings nothing before its end
			}()
			b.ReportAllocs()
			for b.Loop() {
				<-polls
			}
		})
	}
}
