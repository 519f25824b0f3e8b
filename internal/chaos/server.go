package chaos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/rpc"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/testutil"
)

// serveArg is the argument that makes the program the server process.
const serveArg = "-serve-chaos"

// host serves resources, and does what it is ordered to: in the server process, or in memory. Orders
// are its exported methods, called by net/rpc, one at a time.
type host struct {
	store  *testutil.Store
	server *testutil.Server // nil until the first order to serve
	wires  *sync.Map        // of *wire
	token  bool             // a bearer token is required

	mu   sync.Mutex
	mood Mood
}

// Mood is what the server does with all streams, and with each new one.
type Mood struct {
	Refuse codes.Code // ends them with this; OK takes them
	Mute   bool       // leaves requests unread
	Hush   bool       // reads requests, and answers none
}

// obey carries out orders until their end, which is the site's.
func (h *host) obey(orders io.ReadWriteCloser) {
	s := rpc.NewServer()
	if err := s.RegisterName("host", h); err != nil {
		panic(err) // it has no methods
	}
	s.ServeConn(orders)
}

// none is the answer to an order that has none.
type none = *int

// Serving is how the server is to serve.
type Serving struct {
	TLS    string        // directory of ca.pem, cert.pem and key.pem, and a bearer token is asked for
	Age    time.Duration // maximum connection age; 0 is none
	Memory string        // the server's name in memory; else it listens on loopback TCP
}

// Serve (re)starts the server, with an empty store of its own, and answers its address, which is a
// new one.
func (h *host) Serve(how Serving, addr *string) (err error) {
	if h.server != nil {
		h.server.Close()
	}
	*h = host{store: testutil.NewStore(), wires: new(sync.Map), token: how.TLS != ""}
	opts := []testutil.Option{testutil.Unrecorded(), testutil.OnStream(h.opened), h.store.Serve()}
	if how.Memory != "" { // in fake time, which a wire's mutex might hold up
		h.server = testutil.NewServer(append(opts, testutil.Named(how.Memory))...)
	} else {
		h.server, err = testutil.ListenServer("127.0.0.1:0", append(opts, testutil.GRPCOptions(h.overTCP(how)...))...)
	}
	if err == nil {
		*addr = h.server.Target()
	}
	return err
}

func (h *host) overTCP(how Serving) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(&wireCreds{serverCreds(how.TLS), h.wires}),
		grpc.StreamInterceptor(countStream),
		grpc.WriteBufferSize(0), // so that wires know where frames begin
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: how.Age, MaxConnectionAgeGrace: how.Age / 4}),
	}
}

// opened does with a new stream what is to be done.
func (h *host) opened(st *testutil.Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.token && !hasToken(st.Metadata) {
		st.End(status.Error(codes.Unauthenticated, "no token, or one that has expired"))
	}
	h.mood.meet(st)
}

func (m Mood) meet(st *testutil.Stream) {
	switch {
	case m.Refuse != codes.OK:
		st.End(status.Error(m.Refuse, "refused by the harness"))
	case m.Mute:
		st.StopReading()
	default:
		st.ResumeReading()
	}
}

// Be changes the server's mood.
func (h *host) Be(m Mood, _ none) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mood = m
	h.store.Hold(m.Hush)
	for _, st := range h.store.Streams() {
		m.meet(st)
	}
	return nil
}

// Set changes the resources.
func (h *host) Set(to map[string]*fact, _ none) error {
	var there []*discoveryv3.Resource
	for _, f := range to {
		if f.Present {
			there = append(there, testutil.Wrapped(f.Name, f.version(), f.message()))
		} else {
			h.store.Remove(kinds[f.Kind].typ.TypeURL(), f.Name)
		}
	}
	return h.store.Set(there...)
}

// End ends all streams with a status.
func (h *host) End(code codes.Code, _ none) error {
	for _, st := range h.store.Streams() {
		st.End(status.Error(code, "ended by the harness"))
	}
	return nil
}

// Noise sends a message that is no response, on all streams.
func (h *host) Noise(_ int, _ none) error {
	for _, st := range h.store.Streams() {
		go st.SendBytes([]byte{0xff, 0xff}) // a stream that is over needs none
	}
	return nil
}

// Asked is what the server is asked.
type Asked struct {
	Names   map[ask]bool // that are subscribed to
	Settled bool         // all that is subscribed to was sent and answered
	NACKs   int
}

// Asked tells what is asked for.
func (h *host) Asked(_ int, a *Asked) error {
	a.Names = map[ask]bool{}
	for k, kind := range kinds {
		for _, name := range h.store.Subscribed(kind.typ.TypeURL()) {
			a.Names[ask{k, name}] = true
		}
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	a.Settled, a.NACKs = h.store.Settle(now) == nil, h.store.Counters().NACKs
	return nil
}

// Slip slips a frame in on all connections.
func (h *host) Slip(f Frame, _ none) error {
	for w := range h.wires.Range {
		w.(*wire).slipIn(f)
	}
	return nil
}

// Suspend stops the parent, as a laptop that is closed: its clock jumps, and everything that was to happen
// meanwhile happens at once. This process goes on.
func (h *host) Suspend(d time.Duration, _ none) error {
	parent := os.Getppid()
	err := syscall.Kill(parent, syscall.SIGSTOP)
	time.Sleep(d)
	return errors.Join(err, syscall.Kill(parent, syscall.SIGCONT))
}

// serverCreds reads the files in dir at each handshake.
func serverCreds(dir string) credentials.TransportCredentials {
	if dir == "" {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
		ca, noCA := os.ReadFile(filepath.Join(dir, "ca.pem"))
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		return &tls.Config{
			NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair},
			ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		}, errors.Join(err, noCA)
	}})
}

// hasToken looks for a token that has not expired. Its signature is not looked at.
func hasToken(md metadata.MD) bool {
	for _, v := range md.Get("authorization") {
		parts := strings.Split(v, ".")
		var claims struct{ Exp int64 }
		payload, err := base64.RawURLEncoding.DecodeString(parts[len(parts)/2])
		if err == nil && json.Unmarshal(payload, &claims) == nil && time.Now().Unix() < claims.Exp {
			return true
		}
	}
	return false
}
