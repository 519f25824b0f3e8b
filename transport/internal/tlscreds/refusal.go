package tlscreds

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// alertWait bounds the wait for the alert of a server that hung up. It has come before the
// end of the connection, or it never will.
const alertWait = time.Second

// watchedConn tells why a server hangs up after the handshake. In TLS 1.3 a client's part
// of it ends before the server has seen the client's certificate: a refusal comes as an
// alert later, and a write that fails meanwhile would hide it.
type watchedConn struct {
	net.Conn
	answered atomic.Bool       // something came from the server
	refused  func(error) error // completes the alert of a server that never answered
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.answered.Store(true)
	}
	if isAlert(err) && !c.answered.Load() {
		err = c.refused(err)
	}
	return n, err
}

// Write returns the server's alert in place of an error of its own, if there is one. The
// connection is lost by then, so what the search for it reads is not missed.
func (c *watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil || c.answered.Load() {
		return n, err
	}
	if c.SetReadDeadline(time.Now().Add(alertWait)) == nil {
		if _, readErr := c.Conn.Read(make([]byte, 1)); isAlert(readErr) {
			err = c.refused(readErr)
		}
	}
	return n, err
}

// SyscallConn lets gRPC reach the socket, as it does with its own TLS connections.
func (c *watchedConn) SyscallConn() (syscall.RawConn, error) {
	if conn, ok := c.Conn.(syscall.Conn); ok {
		return conn.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// maxText is how much is told, in bytes, of why a handshake failed: a certificate may have names of any
// length.
const maxText = 2048

// briefError is an error with a shorter text.
type briefError struct {
	text string
	err  error
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.err }

// brief is an error whose text is not too long.
func brief(err error) error {
	text := err.Error()
	if len(text) <= maxText {
		return err
	}
	return &briefError{strings.ToValidUTF8(text[:maxText], "") + "... (truncated)", err}
}

// isAlert reports an alert of the peer, for which crypto/tls has no exported type.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
