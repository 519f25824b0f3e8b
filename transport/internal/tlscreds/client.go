package tlscreds

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Client makes TLS connections of the same material for protocols other than gRPC's. Safe
// for concurrent use.
type Client struct {
	*material
	serverName string
}

// NewClient reads no file: that is done as [New] says.
func NewClient(c bootstrap.TLS) *Client {
	return &Client{material: newMaterial(c), serverName: c.ServerName}
}

// Handshake secures conn and offers protos by ALPN; a server may choose none of them.
// host is verified and sent as SNI unless the configuration has a server name. conn is not
// closed by an error.
func (c *Client) Handshake(ctx context.Context, host string, conn net.Conn, protos ...string) (*tls.Conn, error) {
	config, stale, err := c.material.config(ctx)
	if err != nil {
		return nil, err
	}
	config.ServerName, config.NextProtos = cmp.Or(c.serverName, host), protos
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, c.material.refused(err, stale)
	}
	return secure, nil
}

// Expire makes the next handshake read all files, whatever their age: the peer may have
// refused what was read.
func (c *Client) Expire() { c.material.expire() }

// Refusal is the alert with which the server ended a connection; nil if it sent none. In
// TLS 1.3 that is how a client learns that its certificate was refused, after a handshake
// that went well for its part. The connection, which may be closed
// but for what is below, must not be used any more.
func Refusal(conn *tls.Conn) error {
	if conn.SetReadDeadline(time.Now().Add(alertWait)) != nil {
		return nil
	}
	if _, err := conn.Read(make([]byte, 1)); isAlert(err) {
		return err
	}
	return nil
}
