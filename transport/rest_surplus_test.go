package transport_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport"
)

// surplusServer answers each poll with a response of one cluster, and says more than it should with
// the first.
type surplusServer struct {
	net.Listener
	before, after string
	heard         chan struct{} // late is sent once this is closed; nil if nothing is
	late          string
	chunked       bool
	silent        bool          // nothing follows before
	ended         chan struct{} // a connection has ended

	mu           sync.Mutex
	polls, conns int
}

func (s *surplusServer) serve() {
	for {
		c, err := s.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns++
		s.mu.Unlock()
		go s.answer(c)
	}
}

func (s *surplusServer) answer(c net.Conn) {
	defer func() {
		c.Close()
		s.ended <- struct{}{}
	}()
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		s.mu.Lock()
		s.polls++
		n := s.polls
		s.mu.Unlock()
		body := fmt.Sprintf(`{"version_info":"%d","resources":[{"@type":%q,"name":"a"}]}`, n, clusterURL)
		text := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
		if s.chunked {
			text = fmt.Sprintf("Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n", len(body), body)
		}
		text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + text
		switch {
		case s.silent:
			text = s.before
		case n == 1:
			text = s.before + text + s.after
		}
		io.WriteString(c, text)
		if n == 1 && s.heard != nil {
			<-s.heard
			io.WriteString(c, s.late)
		}
	}
}

// standardLog collects what the process logs until the end of the test.
func standardLog(t *testing.T) func() string {
	o := &syncedText{}
	log.SetOutput(o)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	return o.String
}

type syncedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *syncedText) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *syncedText) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// surplusRig is a stream to a server that says more than it should, in the clear or over TLS.
func surplusRig(t *testing.T, server *tls.Config, trust *bootstrap.TLS, s *surplusServer) *restRig {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	ms := polled(lis.Addr().String())
	if s.Listener = lis; trust != nil {
		s.Listener, ms = tls.NewListener(lis, server), polledOverTLS(lis.Addr().String(), *trust)
	}
	s.ended = make(chan struct{}, 10)
	go s.serve()
	r := &restRig{t: t, conn: buildREST(t, transport.RESTConfig{}, ms)}
	r.open()
	r.ask("", "a")
	return r
}

const surplusMarker = "MARK3R"

// A server that sends more than its response says gets no byte of it into the process's standard
// log, to which net/http would print it. The connection ends, and the next is kept.
//
// spec: H-3
func TestBytesAfterResponse(t *testing.T) {
	secret := strings.Repeat(surplusMarker+" ", 1000)
	overHTTPAndHTTPS(t, func(t *testing.T, server *tls.Config, trust *bootstrap.TLS) {
		for name, s := range map[string]*surplusServer{
			"with the response":       {after: secret},
			"with a chunked response": {after: secret, chunked: true},
			"like another end":        {after: secret + "0\r\n\r\n", chunked: true},
			"one byte":                {after: "M"},
			"later":                   {late: secret, heard: make(chan struct{})},
		} {
			t.Run(name, func(t *testing.T) {
				logged := standardLog(t)
				r := surplusRig(t, server, trust, s)
				r.frame("1: a")
				if s.heard != nil {
					close(s.heard)
				}
				<-s.ended // net/http logs before it closes the connection
				if got := logged(); got != "" {
					t.Errorf("the standard log has %d bytes: %.200s", len(got), got)
				}
				r.ask("1", "a", "b")
				r.frame("2: a")
				r.ask("2", "a")
				r.frame("3: a")
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.conns != 2 {
					t.Errorf("%d connections for three polls, want 2: one that ended and one that was kept", s.conns)
				}
			})
		}
	})
}

// What comes before a response can only be taken for the response. The error says what is wrong
// with it, and quotes nothing.
//
// spec: H-3
func TestMalformedResponses(t *testing.T) {
	const m, ok = surplusMarker, "HTTP/1.1 200 OK\r\n"
	overHTTPAndHTTPS(t, func(t *testing.T, server *tls.Config, trust *bootstrap.TLS) {
		for before, want := range map[string]string{
			m + "\r\n":                                  "malformed HTTP response",
			"HTTP/1.1 " + m + "\r\n":                    "malformed HTTP status code",
			ok + m + "\r\n\r\n":                         "malformed MIME header",
			ok + " " + m + ": 1\r\n\r\n":                "malformed MIME header",
			ok + "Content-Length: " + m + "\r\n\r\n":    "bad Content-Length",
			ok + "Transfer-Encoding: " + m + "\r\n\r\n": "unsupported transfer encoding",
			ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + m + "\r\n\r\n": "malformed MIME header",
		} {
			t.Run(fmt.Sprintf("%q", before), func(t *testing.T) {
				logged := standardLog(t)
				s := &surplusServer{before: before}
				r := surplusRig(t, server, trust, s)
				err := <-r.end
				<-s.ended
				if all := err.Error() + logged(); strings.Contains(all, m) {
					t.Errorf("the secret is told: %s", all)
				}
				if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
					t.Errorf("the stream ends with %v, want %v and %q", err, codes.Unavailable, want)
				}
			})
		}
	})
}

// A server that switches to another protocol ends the stream: what would be the body is the connection, of which
// no timeout ends a read.
//
// spec: REST-2
func TestSwitchedProtocol(t *testing.T) {
	overHTTPAndHTTPS(t, func(t *testing.T, server *tls.Config, trust *bootstrap.TLS) {
		s := &surplusServer{before: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", silent: true}
		surplusRig(t, server, trust, s).ends(codes.Unknown, "the server answers 101 Switching Protocols")
		<-s.ended
	})
}

func overHTTPAndHTTPS(t *testing.T, test func(t *testing.T, server *tls.Config, trust *bootstrap.TLS)) {
	ca := newCA(t)
	trust := &bootstrap.TLS{CACertificateFile: files(t, ca, t.TempDir()).CA}
	t.Run("http", func(t *testing.T) { test(t, nil, nil) })
	t.Run("https", func(t *testing.T) { test(t, serverTLS(t, ca, nil), trust) })
}
