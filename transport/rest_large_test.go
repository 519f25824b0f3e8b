package transport_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/transport"
)

// A large body whose size nobody tells comes as it is, or not at all if it ends too early.
//
// spec: H-5
func TestLargeBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("long: bodies of megabytes")
	}
	const limit = 9 << 20 // more than 8 MiB, from where on a body waits for its turn
	for _, size := range []int{8<<20 - 1, limit, limit + 1} {
		for _, cut := range []bool{false, true} {
			if cut && size > limit {
				continue // it is refused before its end
			}
			t.Run(fmt.Sprintf("%d, cut %v", size, cut), func(t *testing.T) {
				head, tail := `{"version_info":"1","resources":[{"@type":"`+clusterURL+`","name":"`, `"}]}`
				name := strings.Repeat("n", size-len(head)-len(tail))
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					io.WriteString(w, head)
					w.(http.Flusher).Flush() // so that its size is not known
					io.WriteString(w, name+tail)
					if cut {
						w.(http.Flusher).Flush()
						panic(http.ErrAbortHandler)
					}
				}))
				defer srv.Close()
				server := polled(srv.Listener.Addr().String())
				server.REST().RequestTimeout = time.Minute
				conn := buildREST(t, transport.RESTConfig{MaxReceiveSize: limit}, server)
				request, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: clusterURL})
				if err != nil {
					t.Fatal(err)
				}
				stream, err := conn.Open(t.Context(), "")
				if err == nil {
					err = stream.Send(request)
				}
				if err != nil {
					t.Fatal(err)
				}
				frame, err := stream.Recv()
				switch {
				case size > limit:
					if err == nil || !strings.Contains(err.Error(), "the limit of") {
						t.Errorf("too large: %v", err)
					}
				case cut:
					if err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
						t.Errorf("cut: %v", err)
					}
				case err != nil || !bytes.Contains(bytes.Join(frame.Parts, nil), []byte(name)):
					t.Errorf("the body did not come: %v", err)
				}
			})
		}
	}
}
