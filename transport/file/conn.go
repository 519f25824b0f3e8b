package file

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/xdswatch/xdswatch/transport"
)

// conn is a [transport.Conn] to a file: its streams each read the file for themselves.
type conn struct {
	uri     string
	path    string   // absolute
	watched []string // directories, absolute
	config  *Config

	mu      sync.Mutex
	closed  bool
	streams map[*stream]struct{}
}

// Open is documented at [transport.Conn]. The file must exist, but need not be good.
func (c *conn) Open(ctx context.Context, _ string) (transport.Stream, error) {
	s, err := c.open(ctx)
	if err != nil {
		return nil, &transport.ConnectError{Server: c.uri, Err: err}
	}
	return s, nil
}

func (c *conn) open(ctx context.Context) (*stream, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := c.exists(); err != nil {
		return nil, &Error{Path: c.path, Err: reason(err)}
	}
	l, err := newLookout([]string{c.path}, c.watched)
	if err != nil {
		if c.config.Recheck < 0 {
			l.close()
			return nil, &Error{Path: c.path, Err: err}
		}
		c.config.Logger.Warn("not all changes of the file are notified; it is looked at now and then", "path", c.path, "error", err)
	}
	s := newStream(ctx, c, l)
	if !c.keep(s) {
		s.Close()
		return nil, transport.ErrClosed
	}
	context.AfterFunc(s.ctx, s.Close)
	return s, nil
}

// exists: a source that is not there is no source, whatever was read from it before
// (envoy.config.core.v3.PathConfigSource, path).
func (c *conn) exists() error {
	info, err := os.Stat(c.path)
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	for _, dir := range c.watched {
		if err == nil {
			_, err = os.Stat(dir)
		}
	}
	return err
}

// keep has the connection close the stream at its end, unless that has come.
func (c *conn) keep(s *stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.streams[s] = struct{}{}
	}
	return !c.closed
}

func (c *conn) forget(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
}

// Close is documented at [transport.Conn].
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	streams := slices.Collect(maps.Keys(c.streams))
	c.mu.Unlock()
	for _, s := range streams {
		s.Close()
	}
	return nil
}
