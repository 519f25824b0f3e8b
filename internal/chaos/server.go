package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
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

// host serves a state, and does what it is ordered to: in the server process, or in memory. Orders
// come one at a time.
type host struct {
	*testutil.Store
	server *testutil.Server // nil until the first order to serve
	wires  *wires
	kinds  []kind
	served map[key]bool
	token  bool // a bearer token is required

	mu      sync.Mutex
	refused codes.Code // of each new stream; OK takes them
	muted   bool
}

// serve obeys orders until their end, which is the parent's.
func serve(orders io.Reader, answers io.Writer) error {
	h := &host{}
	in, out := json.NewDecoder(orders), json.NewEncoder(answers)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		a, err := h.do(o)
		if err != nil {
			a.Err = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

// do carries an order out.
func (h *host) do(o order) (a answer, err error) {
	if err = h.obey(o); h.server == nil {
		return a, err
	}
	a.Addr = h.server.Target()
	if o.Op == opAsked {
		for _, k := range h.kinds {
			a.Asked = append(a.Asked, h.Subscribed(k.typ.TypeURL()))
		}
		a.Streams, a.Settled = len(h.Streams()), h.settled()
	}
	return a, err
}

func (h *host) obey(o order) error {
	if o.Op == opServe {
		return h.serve(*o.Serve, o.State)
	}
	if h.server == nil {
		return errors.New("nothing is served")
	}
	switch o.Op {
	case opSet:
		return h.set(o.State)
	case opEnd:
		for _, st := range h.Streams() {
			st.End(status.Error(codes.Code(o.Code), "ended by the harness"))
		}
	case opRefuse:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.refused = codes.Code(o.Code)
	case opMute:
		h.mute(o.On)
	case opHush:
		h.Hold(o.On)
	case opAsked: // the answer tells
	case opReset:
		h.wires.each(func(w *wire) { w.resetStreams(http2.ErrCode(o.Code)) })
	case opGoAway:
		h.wires.each(func(w *wire) { w.goAway(o.Stream, http2.ErrCode(o.Code)) })
	case opTear:
		h.wires.each((*wire).tear)
	case opNoise:
		for _, st := range h.Streams() {
			go st.SendBytes([]byte{0xff, 0xff}) // a stream that is over needs none
		}
	case opWake:
		wake(o.After)
	default:
		return fmt.Errorf("order %q is not known", o.Op)
	}
	return nil
}

// serve starts the server, anew if it runs, with an empty store of its own.
func (h *host) serve(s serving, first *state) error {
	if h.server != nil {
		h.server.Close()
	}
	*h = host{Store: testutil.NewStore(), wires: &wires{open: map[*wire]struct{}{}}, kinds: kinds(), token: s.Token}
	err := h.set(first)
	opts := []testutil.Option{testutil.Unrecorded(), testutil.OnStream(h.opened), h.Serve()}
	switch {
	case err != nil:
	case s.Memory != "": // in fake time, which a wire's mutex might hold up
		h.server = testutil.NewServer(append(opts, testutil.Named(s.Memory))...)
	default:
		h.server, err = testutil.ListenServer("127.0.0.1:0", append(opts, testutil.GRPCOptions(h.overTCP(s)...))...)
	}
	return err
}

func (h *host) overTCP(s serving) []grpc.ServerOption {
	opts := []grpc.ServerOption{
		grpc.Creds(&wireCreds{TransportCredentials: serverCreds(s.TLS), wires: h.wires}),
		grpc.WriteBufferSize(0), // so that wires know where frames begin
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
	if s.Age > 0 {
		opts = append(opts, grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: s.Age, MaxConnectionAgeGrace: s.Age / 4,
		}))
	}
	return opts
}

// opened breaks a new stream if it is to be broken.
func (h *host) opened(st *testutil.Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.token && !hasToken(st.Metadata):
		st.End(status.Error(codes.Unauthenticated, "no token, or one that has expired"))
	case h.refused != codes.OK:
		st.End(status.Error(h.refused, "refused by the harness"))
	case h.muted:
		st.StopReading()
	}
}

// set serves a state.
func (h *host) set(to *state) error {
	gone := h.served
	h.served = map[key]bool{}
	var all []*discoveryv3.Resource
	for _, i := range to.Items {
		all = append(all, testutil.Wrapped(i.Name, fmt.Sprint(i.Rev), i.message(h.kinds)))
		h.served[key{i.Kind, i.Name}] = true
	}
	for k := range gone {
		if !h.served[k] {
			h.Remove(h.kinds[k.kind].typ.TypeURL(), k.name)
		}
	}
	return h.Set(all...)
}

// mute leaves requests unread, or reads them again.
func (h *host) mute(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.muted = on
	for _, st := range h.Streams() {
		if on {
			st.StopReading()
		} else {
			st.ResumeReading()
		}
	}
}

// settled says whether all that is subscribed to was sent and answered.
func (h *host) settled() bool {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return h.Settle(now) == nil
}

// wake continues the parent after a while; the parent is about to be stopped.
func wake(after time.Duration) {
	parent := os.Getppid()
	time.AfterFunc(after, func() { _ = syscall.Kill(parent, syscall.SIGCONT) })
}

// serverCreds reads the files in dir at each handshake.
func serverCreds(dir string) credentials.TransportCredentials {
	if dir == "" {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(&tls.Config{
		NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
			if err != nil {
				return nil, err
			}
			ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
			if err != nil {
				return nil, err
			}
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(ca)
			return &tls.Config{
				NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair},
				ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
			}, nil
		},
	})
}

// hasToken looks for a token that has not expired. Its signature is not looked at.
func hasToken(md metadata.MD) bool {
	for _, v := range md.Get("authorization") {
		parts := strings.Split(strings.TrimPrefix(v, "Bearer "), ".")
		if len(parts) != 3 {
			continue
		}
		var claims struct{ Exp int64 }
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && json.Unmarshal(payload, &claims) == nil && time.Now().Unix() < claims.Exp {
			return true
		}
	}
	return false
}
