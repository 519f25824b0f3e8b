package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/internal/redact"
)

// conn is a [Conn] over gRPC. It uses one gRPC channel as long as that one has a
// connection, and gives it up after an attempt that found none: a channel has a backoff
// of its own, in which it answers with the error of its last attempt.
type conn struct {
	uri     string
	name    string // as the server is told of
	opts    []grpc.DialOption
	headers []string // keys and values in turn
	config  GRPCConfig
	holder  *holder
	sent    *sent

	// ctx ends when the connection is closed, and its streams with it.
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	closed   bool
	current  *channel              // what the next stream uses; nil if it needs a new one
	channels map[*channel]struct{} // all that are not closed, with those given up
}

// channel is a gRPC channel with its uses, which the conn's mutex guards.
type channel struct {
	*grpc.ClientConn
	dials   dials // has its own mutex
	uses    int   // streams that live, and attempts under way
	givenUp bool  // close with the last use
}

func newConn(uri, name string, opts []grpc.DialOption, headers []string, config GRPCConfig) *conn {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &conn{
		uri: uri, name: name, opts: opts, headers: headers,
		config: config, ctx: ctx, cancel: cancel,
		channels: map[*channel]struct{}{},
	}
}

// prepare makes the first channel, which finds faults of the configuration.
func (c *conn) prepare() error {
	ch, err := c.acquire()
	if err == nil {
		c.release(ch)
	}
	return err
}

// Open is documented at [Conn].
func (c *conn) Open(ctx context.Context, method string) (Stream, error) {
	s, err := c.open(ctx, method)
	if err != nil {
		// STREAM-8: it fails at once, with the reason.
		return nil, &ConnectError{Server: c.name, Err: shortStatus(c.sent.hideIn(c.hide(err)))}
	}
	return s, nil
}

// hide takes out of what gRPC says of the target what is not told of it (H-3).
func (c *conn) hide(err error) error {
	st, ok := status.FromError(err)
	if !ok {
		if text := redact.InTarget(err.Error(), c.uri); text != err.Error() {
			return errors.New(text)
		}
		return err
	}
	if text := redact.InTarget(st.Message(), c.uri); text != st.Message() {
		return status.Error(st.Code(), text)
	}
	return err
}

func (c *conn) open(ctx context.Context, method string) (*stream, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ch, err := c.acquire()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.streamContext(ctx, ch)
	start, bound := time.Now(), 2*c.config.ConnectTimeout
	expire := func() {
		cancel(status.Errorf(codes.DeadlineExceeded, "no stream within %v; the channel is %v", bound, ch.GetState()))
	}
	timer := time.AfterFunc(bound, expire)
	s, err := ch.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(rawCodec{}))
	if !timer.Stop() {
		expire()
	}
	// An end of the contexts is the truer reason than what gRPC makes of it.
	if cause := cmp.Or(context.Cause(c.ctx), context.Cause(ctx)); cause != nil {
		err = cause
	}
	if err != nil {
		// STREAM-8: the next attempt dials anew.
		c.giveUpUnlessReady(ch)
		cancel(err)
		return nil, c.explainTimeout(err, time.Since(start))
	}
	awaitReady(ctx, ch)
	return &stream{grpc: s, cancel: cancel, limit: c.config.MaxReceiveSize, holder: c.holder, sent: c.sent}, nil
}

// awaitReady waits for a channel with a stream to say that it is ready, which gRPC does a
// moment after it let the stream begin. Until then a failed attempt beside the stream would
// count as one that found no connection.
func awaitReady(ctx context.Context, ch *channel) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for ch.GetState() == connectivity.Connecting && ch.WaitForStateChange(ctx, connectivity.Connecting) {
	}
}

// explainTimeout names the timeout where gRPC says what became of the connection after it
// closed it for that.
func (c *conn) explainTimeout(err error, took time.Duration) error {
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.Unavailable || took < c.config.ConnectTimeout {
		return err
	}
	return status.Errorf(codes.Unavailable, "no connection within %v: %s", c.config.ConnectTimeout, st.Message())
}

// streamContext makes the context of one stream over ch. It ends with ctx, with the
// connection, and when cancelled, which must come to pass: its end releases ch.
func (c *conn) streamContext(ctx context.Context, ch *channel) (context.Context, context.CancelCauseFunc) {
	ctx = metadata.AppendToOutgoingContext(ctx, c.headers...)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	context.AfterFunc(ctx, func() {
		stop()
		c.release(ch)
	})
	return ctx, cancel
}

// acquire begins an attempt and returns the channel to use, a new one if the last was given
// up or lost its connection in a way that left it in its backoff. It is to be released.
func (c *conn) acquire() (*channel, error) {
	ch, old, err := c.choose()
	if old != nil {
		c.closeIfUnused(old)
	}
	return ch, err
}

// choose also returns the channel that it gave up, if any.
func (c *conn) choose() (ch, old *channel, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, ErrClosed
	}
	if c.current != nil && c.current.GetState() == connectivity.TransientFailure {
		old = c.current
		c.giveUpLocked(old)
	}
	if c.current == nil {
		made := &channel{}
		opts := append([]grpc.DialOption{grpc.WithContextDialer(made.dials.dial)}, c.opts...)
		if made.ClientConn, err = grpc.NewClient(c.uri, opts...); err != nil {
			return nil, old, c.hide(err)
		}
		c.current = made
		c.channels[made] = struct{}{}
	}
	c.current.dials.begin()
	c.current.uses++
	return c.current, old, nil
}

func (c *conn) release(ch *channel) {
	c.mu.Lock()
	ch.uses--
	c.mu.Unlock()
	c.closeIfUnused(ch)
}

// giveUpUnlessReady gives up a channel after an attempt that failed, unless the channel
// has a connection and the fault was another, such as a call credential's. The attempt
// still holds it.
func (c *conn) giveUpUnlessReady(ch *channel) {
	if ch.GetState() == connectivity.Ready {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveUpLocked(ch)
}

// giveUpLocked keeps the channel for the streams that it may still have, as on a
// connection that its server drains.
func (c *conn) giveUpLocked(ch *channel) {
	ch.givenUp = true
	if c.current == ch {
		c.current = nil
	}
}

// closeIfUnused closes a channel that was given up, once. The lock is not held meanwhile:
// gRPC waits for callbacks of its own.
func (c *conn) closeIfUnused(ch *channel) {
	c.mu.Lock()
	_, open := c.channels[ch]
	last := open && ch.givenUp && ch.uses == 0
	if last {
		delete(c.channels, ch)
	}
	c.mu.Unlock()
	if last {
		ch.Close()
	}
}

// Close is documented at [Conn].
func (c *conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed, c.current = true, nil
	channels := c.channels
	c.channels = nil
	c.mu.Unlock()

	c.cancel(ErrClosed)
	var faults []error
	for ch := range channels {
		if err := ch.Close(); err != nil {
			faults = append(faults, fmt.Errorf("management server %q: %w", c.name, err))
		}
	}
	c.holder.close(&large)
	return errors.Join(faults...)
}
