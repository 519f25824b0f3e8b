package transport_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport"
)

type fixedToken string

func (t fixedToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}
func (fixedToken) RequireTransportSecurity() bool { return false }

// A server that quotes what it refuses tells nobody what it was sent.
//
// spec: H-3
func TestServersThatQuote(t *testing.T) {
	const header, token = "Basic MARK3R-of-a-header", "MARK3R-of-a-token"
	long := strings.Repeat(" so", 37) // the text is cut after 200 bytes, within what follows
	secretive := func(s bootstrap.ManagementServer) bootstrap.ManagementServer {
		s.Headers = []bootstrap.Header{{Key: "x-key", Value: header}, {Key: "x-stage", Value: "test"}}
		s.CallCreds = []bootstrap.CallCreds{{Type: "own", Build: func() (credentials.PerRPCCredentials, error) { return fixedToken(token), nil }}}
		return s
	}
	check := func(t *testing.T, err error) {
		t.Helper()
		text := fmt.Sprint(err)
		for _, want := range []string{"bad key [redacted]", "[redacted] is expired", "in stage test"} {
			if !strings.Contains(text, want) {
				t.Errorf("the error is %q, want it with %q", text, want)
			}
		}
		if strings.Contains(text, "MARK3R") {
			t.Errorf("the error is %q", text)
		}
	}
	said := func(key, auth string) string {
		return fmt.Sprintf("bad key %s in stage test, %s is expired", key, strings.TrimPrefix(auth, "Bearer "))
	}
	t.Run("gRPC", func(t *testing.T) {
		srv := serveTCP(t, func(s grpc.ServerStream) error {
			md, _ := metadata.FromIncomingContext(s.Context())
			return status.Error(codes.Unauthenticated, said(md.Get("x-key")[0], md.Get("authorization")[0]))
		})
		st := open(t, build(t, transport.GRPCConfig{}, secretive(insecure(srv.addr))))
		_, err := st.Recv()
		check(t, err)
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("code %v", status.Code(err))
		}
	})
	t.Run("REST", func(t *testing.T) {
		for name, pad := range map[string]string{"short": "", "cut": long} {
			t.Run(name, func(t *testing.T) {
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusUnauthorized)
					fmt.Fprint(w, said(r.Header.Get("X-Key"), r.Header.Get("Authorization")), pad, r.Header.Get("X-Key"))
				}))
				defer srv.Close()
				st := open(t, buildREST(t, transport.RESTConfig{}, secretive(polled(srv.Listener.Addr().String()))))
				request, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: clusterURL})
				if err == nil {
					err = st.Send(request)
				}
				if err != nil {
					t.Fatal(err)
				}
				_, err = st.Recv()
				check(t, err)
			})
		}
	})
}

// tokenOf gives the value of a header.
type tokenOf struct {
	header string
	value  func() string
}

func (t tokenOf) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{t.header: "Bearer " + t.value()}, nil
}
func (tokenOf) RequireTransportSecurity() bool { return false }

// What a server was sent last is taken out, however many tokens that has, and however often some of them change.
//
// spec: H-3
func TestServersThatQuoteManyTokens(t *testing.T) {
	const others = 5
	srv := serveTCP(t, func(s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		said := md.Get("authorization")
		for i := range others {
			said = append(said, md.Get(fmt.Sprint("x-", i))...)
		}
		return status.Error(codes.Unauthenticated, strings.Join(said, " "))
	})
	s := insecure(srv.addr)
	with := func(c tokenOf) {
		s.CallCreds = append(s.CallCreds, bootstrap.CallCreds{Type: "own", Build: func() (credentials.PerRPCCredentials, error) { return c, nil }})
	}
	for i := range others {
		with(tokenOf{fmt.Sprint("x-", i), func() string { return fmt.Sprint("MARK3R-", i) }})
	}
	with(tokenOf{"authorization", func() string { return "MARK3R-" + rand.Text() }})
	conn := build(t, transport.GRPCConfig{}, s)
	for range 20 {
		_, err := open(t, conn).Recv()
		if text := fmt.Sprint(err); strings.Contains(text, "MARK3R") || strings.Count(text, "[redacted]") != others+1 {
			t.Errorf("the error is %q", text)
		}
	}
}
