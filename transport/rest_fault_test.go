package transport_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// slowly answers a poll after a while, if its client still waits.
func slowly(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			_, _ = w.Write([]byte(`{"version_info":"slow"}`))
		case <-r.Context().Done():
		}
	}
}

// ends waits for the end of the stream and checks its code and text.
func (r *restRig) ends(code codes.Code, text string) {
	r.t.Helper()
	select {
	case err := <-r.end:
		if status.Code(err) != code || !strings.Contains(err.Error(), text) {
			r.t.Fatalf("the stream ends with %v, want %v and %q", err, code, text)
		}
		if again, err2 := r.stream.Recv(); err2 != err || again.Parts != nil {
			r.t.Errorf("Recv again: %v, want the same error", err2)
		}
		if err := r.stream.Send(nil); err != transport.ErrStreamEnded {
			r.t.Errorf("Send: %v, want %v", err, transport.ErrStreamEnded)
		}
	case resp := <-r.frames:
		r.t.Fatalf("received %v; want the end", resp)
	case <-time.After(patience):
		r.t.Fatal("the stream does not end")
	}
}

// ofType answers polls with a response of a type that holds nothing.
func ofType(typeURL string) http.HandlerFunc {
	return answerBody("application/json", `{"version_info":"1","type_url":"`+typeURL+`"}`)
}

// What is neither a response to the poll nor a 304 ends the stream, and says what it was.
// spec: REST-2
func TestRESTFaults(t *testing.T) {
	body := func(body string) http.HandlerFunc { return answerBody("application/json", body) }
	tests := []struct {
		name   string
		answer http.HandlerFunc
		code   codes.Code
		text   string
	}{
		{"500", answerStatus(500), codes.Unknown, "the server answers 500 Internal Server Error: Internal Server Error"},
		{"503", answerStatus(503), codes.Unavailable, "503 Service Unavailable"},
		{"404", answerStatus(404), codes.Unimplemented, "404 Not Found"},
		{"401", answerStatus(401), codes.Unauthenticated, "401"},
		{"403", answerStatus(403), codes.PermissionDenied, "403"},
		{"400", answerStatus(400), codes.Internal, "400"},
		{"413", answerStatus(413), codes.ResourceExhausted, "413"},
		{"204", answerStatus(204), codes.Unknown, "204 No Content"},
		{"html", answerBody("text/html", "<html>\n <body>Log in, please"), codes.Internal, `content type "text/html", 28 bytes`},
		{"broken JSON", body(`;!@#badjso n`), codes.Internal, "no DiscoveryResponse (line 1:1: invalid character"},
		{"half of it", body(`{"version_info":"1","resources":[`), codes.Internal, "unexpected end of JSON input"},
		{"nothing", body(``), codes.Internal, "unexpected end of JSON input"},
		{"null", body(`null`), codes.Internal, "want an object"},
		{"a list", body(`[]`), codes.Internal, "no DiscoveryResponse"},
		{"an empty object", body(`{}`), codes.Internal, "without any field"},
		{"another object", body(`{"error":"no such tenant","code":7}`), codes.Internal, `without any field of a DiscoveryResponse), content type "application/json", 35 bytes`},
		{"wrong kinds of fields", body(`{"version_info":{}}`), codes.Internal, "version_info: an invalid value for a string field"},
		{"resources are no list", body(`{"resources":{}}`), codes.Internal, "resources are no list"},
		{"another type", ofType(listenerURL), codes.Internal, `POST http://memory:1/v3/discovery:clusters at memory:1: the server answers with resources of type "` + listenerURL + `" to a poll for "` + clusterURL + `"`},
		{"the type of version 2", ofType(clusterV2), codes.Internal, `of type "` + clusterV2 + `" to a poll for "` + clusterURL + `"`},
		{"503 to a poll", answerStatus(503), codes.Unavailable, "POST http://memory:1/v3/discovery:clusters at memory:1: the server answers 503"},
		{"hang", answerHang, codes.DeadlineExceeded, "the request timeout is 1s"},
		{"slow body", slowBody, codes.DeadlineExceeded, "the request timeout is 1s"},
		{"foreign encoding", encoded("br"), codes.Internal, `no DiscoveryResponse (the body is encoded as "br", which was not offered)`},
		{"broken gzip", encoded("gzip"), codes.Internal, "no DiscoveryResponse (gzip: invalid header)"},
		{"away", answerRedirect(307, "http://elsewhere.example/v3/discovery:clusters"), codes.Unavailable, "a redirect is refused: it leads to another host, http://elsewhere.example"},
		{"to another scheme", answerRedirect(308, "https://memory:1/"), codes.Unavailable, "another host, https://memory:1"},
		{"to a GET", answerRedirect(302, "/other"), codes.Unavailable, "makes a GET of the POST"},
		{"round and round", answerRedirect(307, "/v3/discovery:clusters"), codes.Unavailable, "3 were followed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inRESTBubble(t, func(r *restRig) {
				r.srv.Answer(tt.answer)
				r.ask("", "a")
				r.ends(tt.code, tt.text)
				if polls := r.srv.Polls(); polls > 4 {
					t.Errorf("%d polls", polls)
				}
			})
		})
	}
}

// slowBody begins a response and sends a byte of it each 100 ms.
func slowBody(w http.ResponseWriter, r *http.Request) {
	for {
		_, _ = w.Write([]byte(" "))
		w.(http.Flusher).Flush()
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
}

// encoded answers with what is not encoded as it says.
func encoded(as string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", as)
		_, _ = w.Write([]byte(`{"version_info":"1"}`))
	}
}

// A redirect within the host is followed with the request.
func TestRESTRedirectOnHost(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a")
		r.srv.Answer(func(w http.ResponseWriter, req *http.Request) {
			r.srv.Answer(nil)
			answerRedirect(307, "/v3/discovery:clusters?moved")(w, req)
		})
		r.ask("", "a")
		r.poll("a @")
		r.poll("a @")
		r.frame("1: a")
	})
}

// A broken poll leaves the version where it was; a later stream goes on from there.
func TestRESTBadJSONRecovery(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("0", "a")
		r.ask("", "a")
		r.poll("a @")
		r.frame("0: a")
		r.ask("0", "a")
		r.srv.Answer(answerBody("application/json", ";!@#badjso n"))
		r.poll("a @0")
		r.ends(codes.Internal, "no DiscoveryResponse")
		r.srv.Answer(nil)
		r.set("1", "a")
		r.open()
		r.ask("0", "a")
		r.poll("a @0")
		r.frame("1: a")
	})
}

// spec: REST-3
func TestRESTRequestTimeout(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		begin := time.Now()
		r.srv.Answer(answerHang)
		r.ask("", "a")
		r.ends(codes.DeadlineExceeded, "the request timeout is 5s")
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("the poll ends after %v, want 5s", took)
		}
	}, func(_ *testutil.RESTConfig, s *bootstrap.ManagementServer) { s.REST().RequestTimeout = 5 * time.Second })
}

// Who sends what is no request hears so from Recv.
func TestRESTNoRequest(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		if err := r.stream.Send([]byte{0xff}); err != transport.ErrStreamEnded {
			t.Errorf("Send: %v", err)
		}
		r.ends(codes.Internal, "not a DiscoveryRequest")
	})
}

func TestRESTUnknownType(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.send(&discoveryv3.DiscoveryRequest{TypeUrl: "type.googleapis.com/envoy.config.route.v3.VirtualHost"})
		r.ends(codes.Unimplemented, "RESTConfig.Paths")
	})
}

// Closing a stream, a connection or the context of a stream ends what waits, be it between
// polls or in one.
func TestRESTEnds(t *testing.T) {
	polling := map[string]func(*restRig){
		"before the first poll": func(*restRig) {},
		"between polls": func(r *restRig) {
			r.set("1", "a")
			r.ask("", "a")
			r.frame("1: a")
		},
		"in a poll": func(r *restRig) {
			r.srv.Answer(answerHang)
			r.ask("", "a")
			r.poll("a @")
		},
	}
	for name, begin := range polling {
		t.Run(name, func(t *testing.T) {
			inRESTBubble(t, func(r *restRig) {
				begin(r)
				synctest.Wait()
				r.stream.Close()
				r.stream.Close()
				r.ends(codes.Canceled, "the stream was closed")
				r.open()
				begin(r)
				synctest.Wait()
				for range 2 {
					if err := r.conn.Close(); err != nil {
						t.Error(err)
					}
				}
				r.ends(codes.Canceled, transport.ErrClosed.Error())
				if _, err := r.conn.Open(r.t.Context(), ""); !errors.Is(err, transport.ErrClosed) {
					t.Errorf("Open after Close: %v, want %v", err, transport.ErrClosed)
				}
				synctest.Wait()
				if n := r.srv.Connections(); n != 0 {
					t.Errorf("%d connections after Close", n)
				}
			})
		})
	}
}

// A connection that the server closed while it was idle costs no poll.
func TestRESTIdleConnectionClosed(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.set("1", "a")
		r.ask("", "a")
		r.poll("a @")
		r.frame("1: a")
		r.ask("1", "a")
		for range 3 {
			synctest.Wait()
			r.srv.CloseIdle()
			r.poll("a @1")
		}
		r.nothing()
	})
}

// What a poll brings is bounded, however it is packed, and need not be known beforehand.
func TestRESTLimit(t *testing.T) {
	bomb := answerBomb(t, 1<<24)
	large := answerBody("application/json", `{"version_info":"`+strings.Repeat("1", 1<<20)+`"}`)
	for name, answer := range map[string]http.HandlerFunc{"bomb": bomb, "endless": answerEndless, "large": large} {
		t.Run(name, func(t *testing.T) {
			srv := testutil.StartRESTServer(t, testutil.RESTConfig{})
			srv.Answer(answer)
			ms := polled(srv.Addr())
			ms.REST().RequestTimeout = time.Minute
			c := buildREST(t, transport.RESTConfig{MaxReceiveSize: 1 << 20}, ms)
			r := &restRig{t: t, srv: srv, conn: c}
			r.open()
			r.ask("", "a")
			r.ends(codes.ResourceExhausted, "larger than the limit of 1048576 bytes; RESTConfig.MaxReceiveSize raises it")
		})
	}
}

// Without a limit of the program's there is one all the same.
func TestRESTDefaultLimit(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.srv.Answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(128<<20+1))
			w.WriteHeader(http.StatusOK)
		})
		r.ask("", "a")
		r.ends(codes.ResourceExhausted, "larger than the limit of 134217728 bytes; RESTConfig.MaxReceiveSize raises it")
	})
}

// A body that is said to be as it is is no encoded one.
func TestRESTIdentity(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.srv.Answer(encoded("Identity"))
		r.ask("", "a")
		r.frame("1:")
	})
}

// A response is taken in that was packed.
func TestRESTGzip(t *testing.T) {
	bomb := answerBomb(t, 1<<20)
	inRESTBubble(t, func(r *restRig) {
		r.srv.Answer(bomb)
		r.ask("", "a")
		if got := len((<-r.frames).GetVersionInfo()); got != 1<<20 {
			t.Errorf("a version of %d bytes, want 1 MiB", got)
		}
	})
}

func TestRESTBuild(t *testing.T) {
	change := func(f func(*bootstrap.ManagementServer)) bootstrap.ManagementServer {
		s := polled("localhost:1")
		f(&s)
		return s
	}
	jwt := []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: "token"}}
	tests := []struct {
		name   string
		server bootstrap.ManagementServer
		want   string // "" is no error
	}{
		{"good", polled("localhost:1", "dns:///localhost:1", "unix:/a", "unix:///a", "unix-abstract:a"), ""},
		{"not REST", insecure("localhost:1"), "no REST configuration"},
		{"no endpoint", polled(), "no endpoint"},
		{"delta", change(func(s *bootstrap.ManagementServer) { s.Delta = true }), "no delta variant"},
		{"no delay", change(func(s *bootstrap.ManagementServer) { s.REST().RefreshDelay = 0 }), "no refresh delay"},
		{"negative timeout", change(func(s *bootstrap.ManagementServer) { s.REST().RequestTimeout = -1 }), "request timeout of -1ns"},
		{"no port", polled("localhost"), `endpoint 0, "localhost": address localhost: missing port`},
		{"no host", polled("a:1", ":1"), `endpoint 1, ":1": want a host and a port`},
		{"no socket", polled("unix:"), "no path of a socket"},
		{"authority", change(func(s *bootstrap.ManagementServer) { s.HostAuthority = "a b" }), `authority "a b"`},
		{"path as authority", change(func(s *bootstrap.ManagementServer) { s.HostAuthority = "a/b" }), `authority "a/b"`},
		{"unknown creds", change(func(s *bootstrap.ManagementServer) { s.ChannelCreds.Type = "x" }), `channel_creds "x": nothing makes`},
		{"token in the clear", change(func(s *bootstrap.ManagementServer) { s.CallCreds = jwt }), "need a secure channel"},
		{"unknown call creds", change(func(s *bootstrap.ManagementServer) { s.CallCreds = []bootstrap.CallCreds{{Type: "x"}} }), `call_creds "x"`},
		{"binary header", change(func(s *bootstrap.ManagementServer) { s.Headers = []bootstrap.Header{{Key: "a-bin"}} }), "gRPC's own"},
		{"host header", change(func(s *bootstrap.ManagementServer) { s.Headers = []bootstrap.Header{{Key: "Host"}} }), "HTTP's own"},
		{"bad header", change(func(s *bootstrap.ManagementServer) { s.Headers = []bootstrap.Header{{Key: "a b"}} }), `header "a b"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := transport.NewREST(transport.RESTConfig{}).Build(tt.server)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || c != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %v; want an error with %q", c, err, tt.want)
			}
		})
	}
}

// Each server goes to the builder of its kind.
func TestByServer(t *testing.T) {
	all := transport.ByServer{GRPC: transport.NewGRPC(transport.GRPCConfig{}), REST: transport.NewREST(transport.RESTConfig{})}
	for _, s := range []bootstrap.ManagementServer{insecure("localhost:1"), polled("localhost:1")} {
		c, err := all.Build(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := (transport.ByServer{}).Build(s); err == nil || !strings.Contains(err.Error(), "nothing makes connections") {
			t.Errorf("without builders: %v", err)
		}
	}
	if _, err := all.GRPC.Build(polled("localhost:1")); err == nil {
		t.Error("gRPC takes a server that is to be polled")
	}
}

// A response of the machine's bytes is one, whatever the JSON looked like.
func TestRESTFrameIsAResponse(t *testing.T) {
	inRESTBubble(t, func(r *restRig) {
		r.srv.Answer(answerBody("text/plain", `{"versionInfo":"1","typeUrl":"`+clusterURL+`","nonce":"n","controlPlane":{"identifier":"cp"},"future":[1]}`))
		r.ask("", "a")
		want := &discoveryv3.DiscoveryResponse{VersionInfo: "1", TypeUrl: clusterURL, Nonce: "n"}
		got := <-r.frames
		want.ControlPlane = got.GetControlPlane()
		if !proto.Equal(got, want) || got.GetControlPlane().GetIdentifier() != "cp" {
			t.Errorf("received %v, want %v", got, want)
		}
	})
}
