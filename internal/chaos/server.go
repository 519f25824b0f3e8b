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

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/testutil"
)

// server is a management server on loopback TCP.
type server interface {
	Addr() string
	Stop()
	set(state) error
}

// snapshots is go-control-plane's server.
type snapshots struct {
	*testutil.ManagementServer
	kinds []kind
}

func newSnapshots(ks []kind, opts []grpc.ServerOption) (*snapshots, error) {
	m, err := testutil.NewManagementServer(testutil.ManagementConfig{GRPC: opts})
	return &snapshots{m, ks}, err
}

func (s *snapshots) set(to state) error {
	var ms []proto.Message
	for _, i := range to.Items {
		ms = append(ms, i.message(s.kinds))
	}
	return s.Set(to.Version, ms...)
}

// collections is the server of structured names.
type collections struct {
	*testutil.CollectionServer
	kinds []kind
	held  map[key]bool
}

func newCollections(ks []kind, opts []grpc.ServerOption) (*collections, error) {
	c, err := testutil.NewCollectionServer(testutil.CollectionConfig{GRPC: opts})
	return &collections{c, ks, map[key]bool{}}, err
}

func (c *collections) set(to state) error {
	gone := c.held
	c.held = map[key]bool{}
	var all []*discoveryv3.Resource
	for _, i := range to.Items {
		all = append(all, testutil.Wrapped(i.Name, fmt.Sprint(i.Rev), i.message(c.kinds)))
		c.held[key{i.Kind, i.Name}] = true
	}
	for k := range gone {
		if !c.held[k] {
			c.Remove(c.kinds[k.kind].typ.TypeURL(), k.name)
		}
	}
	return c.Set(all...)
}

// serveArg is the argument that makes the program the server process.
const serveArg = "-serve-chaos"

// host is the server process.
type host struct {
	kinds   []kind
	server  server // nil until the first order to serve
	breaker *breaker
	wires   *wires
}

// serve obeys orders until their end, which is the parent's.
func serve(orders io.Reader, answers io.Writer) error {
	h := &host{kinds: kinds()}
	in, out := json.NewDecoder(orders), json.NewEncoder(answers)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var a answer
		if err := h.obey(o); err != nil {
			a.Err = err.Error()
		}
		if h.server != nil {
			a.Addr = h.server.Addr()
		}
		if o.Op == opAsked {
			a.Asked = h.breaker.asks()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

func (h *host) obey(o order) error {
	if o.Op == opServe {
		return h.serve(*o.Serve, *o.State)
	}
	if h.server == nil {
		return errors.New("nothing is served")
	}
	switch o.Op {
	case opSet:
		return h.server.set(*o.State)
	case opEnd:
		h.breaker.end(codes.Code(o.Code))
	case opRefuse:
		h.breaker.refuse(codes.Code(o.Code))
	case opMute:
		h.breaker.mute(o.On)
	case opHush:
		h.breaker.hush(o.On)
	case opAsked: // the answer tells
	case opReset:
		h.wires.each(func(w *wire) { w.resetStreams(o.Code) })
	case opGoAway:
		h.wires.each(func(w *wire) { w.goAway(o.Stream, o.Code) })
	case opTear:
		h.wires.each((*wire).tear)
	case opNoise:
		h.wires.each((*wire).noise)
	case opWake:
		wake(o.After)
	default:
		return fmt.Errorf("order %q is not known", o.Op)
	}
	return nil
}

// serve starts the server, anew if it runs, with an empty cache of its own.
func (h *host) serve(s serving, first state) error {
	if h.server != nil {
		h.server.Stop()
	}
	h.breaker, h.wires = newBreaker(s.Token, s.Globs), &wires{open: map[*wire]struct{}{}}
	opts := []grpc.ServerOption{
		grpc.ChainStreamInterceptor(h.breaker.intercept),
		grpc.Creds(&wireCreds{TransportCredentials: serverCreds(s.TLS), wires: h.wires}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
	if s.Age > 0 {
		opts = append(opts, grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: s.Age, MaxConnectionAgeGrace: s.Age / 4,
		}))
	}
	var err error
	if s.Globs {
		h.server, err = newCollections(h.kinds, opts)
	} else {
		h.server, err = newSnapshots(h.kinds, opts)
	}
	if err != nil {
		return err
	}
	return h.server.set(first)
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
