package transport_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/transport"
)

// answered makes an answer of gRPC with a trailer.
func answered(key, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", key)
		w.(http.Flusher).Flush()
		w.Header().Set(key, value)
	}
}

// The error of a stream to a server that does not speak gRPC is short, says what came, and quotes
// no body but a plain sentence.
//
// spec: H-3
func TestServersWithoutGRPC(t *testing.T) {
	const secret = "MARK3R"
	long := strings.Repeat("x", 100<<10)
	tests := []struct {
		name   string
		answer http.HandlerFunc
		text   string
	}{
		{"a REST server", answerBody("application/json", `{"resources":[{"private_key":"`+secret+`"}]}`), `unexpected content-type "application/json"`},
		{"a page", answerBody("text/html", "<p>"+secret), `unexpected content-type "text/html"`},
		{"a plain text", answerBody("text/plain", "no healthy upstream"), "no healthy upstream"},
		{"JSON as a plain text", answerBody("text/plain; charset=utf-8", `{"private_key":"`+secret+`"}`), `unexpected content-type "text/plain`},
		{"YAML as a plain text", answerBody("text/plain", "private_key:\n  inline_string: "+secret), `unexpected content-type "text/plain"`},
		{"JSON behind a long plain text", answerBody("text/plain", strings.Repeat("so ", 100)+`{"private_key":"`+secret+`"}`), `unexpected content-type "text/plain"`},
		{"YAML with returns", answerBody("text/plain", "private_key:\r  inline_string: "+secret), `unexpected content-type "text/plain"`},
		{"a long content type", answerBody(long, secret), "unexpected content-type"},
		{"a long text of a page", answerBody("text/html", long+secret), `unexpected content-type "text/html"`},
		{"a long header", headed(200, "X-Long", long+secret), "unexpected"},
		{"a long trailer", answered("X-Long", long+secret), "code = Unknown"},
		{"details that are none", answered("Grpc-Status-Details-Bin", "!"+secret), "grpc-status-details-bin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(tt.answer)
			srv.Config.Protocols = new(http.Protocols)
			srv.Config.Protocols.SetUnencryptedHTTP2(true)
			srv.Start()
			defer srv.Close()
			conn, err := transport.NewGRPC(transport.GRPCConfig{}).Build(insecure(srv.Listener.Addr().String()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			st, err := conn.Open(t.Context(), "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources")
			if err == nil {
				if err := st.Send([]byte("x")); err != nil && !errors.Is(err, transport.ErrStreamEnded) {
					t.Fatal(err)
				}
				_, err = st.Recv()
			}
			if err == nil {
				t.Fatal("a response came")
			}
			if text := err.Error(); !strings.Contains(text, tt.text) || strings.Contains(text, secret) || len(text) > 6<<10 {
				t.Errorf("%d bytes, %.600s; want %q in a short text without the secret", len(text), text, tt.text)
			}
		})
	}
}
