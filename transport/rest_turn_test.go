package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/transport"
)

// A server that is polled for many types has one large body in memory at a time, and of one that it only says to be
// large nothing. Polls that wait for it have their whole timeout afterwards, and small ones do not
// wait.
//
// spec: H-5
func TestCostOfLargeBodies(t *testing.T) {
	race.SkipCost(t)
	types := []string{
		"envoy.config.listener.v3.Listener", "envoy.config.route.v3.RouteConfiguration", "envoy.config.cluster.v3.Cluster",
		"envoy.config.endpoint.v3.ClusterLoadAssignment", "envoy.extensions.transport_sockets.tls.v3.Secret", "envoy.service.runtime.v3.Runtime",
	}
	const timeout = time.Second
	for kind, most := range map[string]uint64{"of known length": 64 << 20, "without end": 450 << 20} {
		t.Run(kind, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch small := strings.HasSuffix(r.URL.Path, "runtime"); {
				case small:
					io.WriteString(w, `{"version_info":"1"}`)
				case kind == "of known length":
					w.Header().Set("Content-Length", fmt.Sprint(120<<20))
					w.WriteHeader(http.StatusOK)
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				default:
					io.WriteString(w, `{"version_info":"`)
					for n := 0; n < 32<<20 && r.Context().Err() == nil; n += 1 << 20 {
						w.Write([]byte(strings.Repeat("v", 1<<20)))
					}
					<-r.Context().Done()
				}
			}))
			defer srv.CloseClientConnections()
			server := polled(srv.Listener.Addr().String())
			server.REST().RequestTimeout = timeout
			conn := buildREST(t, transport.RESTConfig{}, server)
			type end struct {
				typ  string
				err  error
				took time.Duration
			}
			ends := make(chan end, len(types))
			begin := time.Now()
			peak := heapsize.While(func() {
				for _, typ := range types {
					stream, err := conn.Open(t.Context(), "")
					if err != nil {
						t.Fatal(err)
					}
					request, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: "type.googleapis.com/" + typ})
					if err != nil {
						t.Fatal(err)
					}
					if err := stream.Send(request); err != nil {
						t.Fatal(err)
					}
					go func() {
						_, err := stream.Recv()
						ends <- end{typ, err, time.Since(begin)}
					}()
				}
				for i := range types {
					switch e := <-ends; {
					case i == 0 && (e.err != nil || !strings.HasSuffix(e.typ, "Runtime")):
						t.Errorf("first came %s after %v: %v", e.typ, e.took, e.err)
					case i > 0 && (e.err == nil || !strings.Contains(e.err.Error(), "request timeout") || kind == "of known length" && e.took < time.Duration(i)*timeout*9/10):
						t.Errorf("%s ends after %v with %v; %d were before it", e.typ, e.took, e.err, i-1)
					}
				}
			})
			t.Logf("heap of %d MiB", peak>>20)
			if peak > most {
				t.Errorf("the heap grew to %d MiB", peak>>20)
			}
		})
	}
}
