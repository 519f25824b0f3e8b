package transport

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

const (
	defaultKeepaliveTime    = 5 * time.Minute
	defaultKeepaliveTimeout = 20 * time.Second
	defaultConnectTimeout   = 20 * time.Second

	bufferSize = 128 << 10 // of what one system call writes or reads
)

// receiveSize is how large a response may be, of what the program asks for.
func receiveSize(asked int) int {
	if asked <= 0 {
		// STREAM-7, S-29: not gRPC's 4 MiB.
		return defaultReceiveSize
	}
	return min(asked, math.MaxInt32)
}

// GRPCConfig configures [NewGRPC]. The zero value works.
type GRPCConfig struct {
	// KeepaliveTime is how long a connection with open streams may be silent until the client
	// pings the server. 0 means the bootstrap's value for the server ([bootstrap.GRPC]), or else
	// 5 minutes, which gRPC servers allow by default; gRPC raises less than 10 seconds to that;
	// a negative value means no pings. The client does not ping on a connection without streams.
	KeepaliveTime time.Duration
	// KeepaliveTimeout is how long a server may take to answer a ping before the connection, and
	// its streams with it, counts as lost. 0 or less means the bootstrap's value, or else 20
	// seconds.
	KeepaliveTimeout time.Duration
	// MaxReceiveSize is the largest response that is accepted, in bytes, on the wire and after
	// decompression. 0 or less means 128 MiB, instead of gRPC's 4 MiB, which a whole snapshot
	// soon exceeds; the maximum is 2 GiB less one byte. A larger response ends its stream with
	// RESOURCE_EXHAUSTED. The unfinished responses on all streams of a connection may have one and a
	// half times this size together; if they have more, the connection ends. The client decompresses gzip
	// itself. A decompressor of the program in DialOptions (grpc.WithDecompressor), which takes its
	// place, has to bound its own output.
	MaxReceiveSize int
	// ConnectTimeout bounds an attempt at one address: TCP, TLS and HTTP/2 together. 0 or less
	// means 20 seconds. Open as a whole, with name resolution and all addresses, takes at most
	// twice that.
	ConnectTimeout time.Duration
	// Headers are sent with every stream to every server, before those that the bootstrap
	// gives for a server.
	Headers []bootstrap.Header
	// CredentialFiles, if not nil, hears of files of "tls" and "jwt_token_file" credentials that go
	// bad while a connection exists, within seconds: also when no handshake or call needs them. It
	// is called by goroutines of several connections, and must not block for long.
	CredentialFiles func(FileReport)
	// DialOptions are appended to the options made of the other fields, and so override them:
	// interceptors, stats handlers, a dialer of the program's own. With transport credentials among
	// them a connection has no bound of what small frames and unfinished responses take; with those that
	// [bootstrap.WithChannelCreds] makes it has.
	//
	// The default dialer, which they may replace (grpc.WithContextDialer), dials TCP and Unix
	// sockets, uses no proxy, whatever HTTPS_PROXY says, and dials each address once in an
	// attempt: with another one, gRPC dials repeatedly without a pause while a server accepts
	// connections and ends them before the stream begins. grpc.WithContextDialer(nil) is gRPC's
	// own dialer, which obeys HTTPS_PROXY and NO_PROXY.
	DialOptions []grpc.DialOption
}

func (c GRPCConfig) withDefaults() GRPCConfig {
	orDefault := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	if c.KeepaliveTime == 0 {
		c.KeepaliveTime = defaultKeepaliveTime
	}
	orDefault(&c.KeepaliveTimeout, defaultKeepaliveTimeout)
	orDefault(&c.ConnectTimeout, defaultConnectTimeout)
	c.MaxReceiveSize = receiveSize(c.MaxReceiveSize)
	return c
}

// dialOptions are those that do not depend on the server.
func (c GRPCConfig) dialOptions() []grpc.DialOption {
	opts := []grpc.DialOption{
		// A service config from DNS could change the timeouts and retries of streams.
		grpc.WithDisableServiceConfig(),
		// Requests and responses may have megabytes. gRPC gives the buffers back when
		// nothing is on its way.
		grpc.WithWriteBufferSize(bufferSize), grpc.WithReadBufferSize(bufferSize),
		//lint:ignore SA1019 a compressor of encoding.RegisterCompressor would be one of the process
		grpc.WithDecompressor(packed{}),
		// H-9: small fields take several times what is counted.
		grpc.WithMaxHeaderListSize(grpcHeaderBytes),
		grpc.WithStaticStreamWindowSize(streamWindow), grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.MaxReceiveSize)),
		// The backoff is only seen by a channel that drains its last streams: one that
		// found no connection is given up. gRPC makes no attempt shorter than its delay.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: min(time.Second, c.ConnectTimeout), Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: c.ConnectTimeout,
		}),
	}
	// STREAM-7, S-8: a silent connection is pinged.
	if c.KeepaliveTime > 0 {
		opts = append(opts, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: c.KeepaliveTime, Timeout: c.KeepaliveTimeout,
		}))
	}
	return opts
}

// GRPC is the [Builder] of connections over gRPC. Safe for concurrent use.
type GRPC struct {
	config GRPCConfig // with defaults
	given  GRPCConfig // without
}

// NewGRPC makes a builder of gRPC connections. They read no environment variables, unless a dial
// option does.
func NewGRPC(c GRPCConfig) *GRPC { return &GRPC{config: c.withDefaults(), given: c} }

// configOf is the configuration for one server, whose keepalive counts where the program has
// left it open.
func (g *GRPC) configOf(s bootstrap.ManagementServer) GRPCConfig {
	c := g.config
	of := s.GRPC()
	if of == nil {
		return c
	}
	if g.given.KeepaliveTime == 0 && of.KeepaliveTime > 0 {
		c.KeepaliveTime = of.KeepaliveTime
	}
	if g.given.KeepaliveTimeout <= 0 && of.KeepaliveTimeout > 0 {
		c.KeepaliveTimeout = of.KeepaliveTimeout
	}
	return c
}

// Build makes a connection to the server. Targets are gRPC's: "host:port", "dns:///…",
// "unix:/path" and "unix:///path", "passthrough:///…", and those of the program's resolvers. It
// returns an error for a target, a header or a credential that cannot work: among them call
// credentials that require privacy, as "jwt_token_file" does, on an "insecure" channel, on which
// each call would fail (gRFC A97).
func (g *GRPC) Build(s bootstrap.ManagementServer) (Conn, error) {
	if s.REST() != nil {
		return nil, buildError(s, errors.New("it is to be polled over HTTP, see NewREST"))
	}
	h := new(holder)
	secrets := new(sent)
	creds, looks, err := credentialOptions(s, bounds{g.config.MaxReceiveSize, h}, secrets)
	if err != nil {
		return nil, buildError(s, err)
	}
	headers, err := headerPairs(g.config.Headers, s.Headers)
	if err != nil {
		return nil, buildError(s, err)
	}
	for i := 1; i < len(headers); i += 2 {
		secrets.add(headers[i])
	}
	opts := append(g.configOf(s).dialOptions(), creds...)
	if s.HostAuthority != "" {
		opts = append(opts, grpc.WithAuthority(s.HostAuthority))
	}
	c := newConn(s.URI, s.Name(), append(opts, g.config.DialOptions...), headers, g.config)
	c.holder, c.sent = h, secrets
	if err := c.prepare(); err != nil {
		return nil, buildError(s, fmt.Errorf("%w: %w", ErrTarget, err))
	}
	go watchFiles(c.ctx, s, looks, g.config.CredentialFiles)
	return c, nil
}
