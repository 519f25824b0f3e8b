package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/xdswatch/xdswatch/testutil"
)

// serveArg is the argument that makes the program the server process.
const serveArg = "-serve-chaos"

// host serves, and does what it is ordered to: in the server process, or in memory. Not safe for
// concurrent use.
type host struct {
	server  *testutil.Server // nil until the first order to serve
	station *station
	wires   *wires
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
	err = h.obey(o)
	if h.server != nil {
		a.Addr = h.server.Target()
	}
	if o.Op == opAsked {
		a.Asked, a.Streams, a.Settled = h.station.asked(), len(h.station.Streams()), h.station.settled()
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
		return h.station.set(o.State)
	case opEnd:
		h.station.end(codes.Code(o.Code))
	case opRefuse:
		h.station.refuse(codes.Code(o.Code))
	case opMute:
		h.station.mute(o.On)
	case opHush:
		h.station.Hold(o.On)
	case opAsked: // the answer tells
	case opReset:
		h.wires.each(func(w *wire) { w.resetStreams(http2.ErrCode(o.Code)) })
	case opGoAway:
		h.wires.each(func(w *wire) { w.goAway(o.Stream, http2.ErrCode(o.Code)) })
	case opTear:
		h.wires.each((*wire).tear)
	case opNoise:
		h.station.noise()
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
	h.station, h.wires = newStation(s.Token), &wires{open: map[*wire]struct{}{}}
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
	all := append(h.station.options(), testutil.GRPCOptions(opts...))
	err := h.station.set(first)
	switch {
	case err != nil:
	case s.Memory != "":
		h.server = testutil.NewServer(append(all, testutil.Named(s.Memory))...)
	default:
		h.server, err = testutil.ListenServer("127.0.0.1:0", all...)
	}
	return err
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
