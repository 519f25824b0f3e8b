package kit

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"strconv"
)

// Operations of the control connection.
const (
	OpScenario = "scenario" // prepare for a stream
	OpUpdate   = "update"   // U changes, or rounds of heartbeats, each when the last was acknowledged
	OpKill     = "kill"     // change the last resource and end the stream
	OpAwait    = "await"    // wait until no more than U names are subscribed
	OpIdle     = "idle"     // wait until all that OpUpdate asked for is sent and acknowledged
	OpStats    = "stats"
	OpReset    = "reset" // count anew
	OpCert     = "cert"  // the certificate of the TLS port
)

// Op is one line from driver to server on the control connection.
type Op struct {
	Op       string
	Scenario Scenario
	U        int
	WaitAck  bool // stats: wait until every response is acknowledged
	WaitMS   int  // await, idle: no longer than this
}

// Stats is the server's answer: what it has counted since the last scenario or reset.
// Bytes are those of messages, without gRPC's five and HTTP/2's nine.
type Stats struct {
	Reqs, ReqBytes, Resps, RespBytes, Streams, Conns int64
	CPUMS                                            float64 // the server's own, user and system
	Cert                                             string  // PEM
	Err                                              string
}

// ControlAddr is where the control connection of the server at addr listens.
func ControlAddr(addr string) (string, error) { return after(addr, 1) }

// TLSAddr is where the server at addr speaks TLS.
func TLSAddr(addr string) (string, error) { return after(addr, 2) }

// ServerAddr is where one of the servers listens, of which the first is at addr.
func ServerAddr(addr string, server int) (string, error) {
	if server == 0 {
		return addr, nil
	}
	return after(addr, 2+server)
}

func after(addr string, ports int) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(n+ports)), err
}

type control struct {
	c net.Conn
	r *bufio.Reader
}

func dialControl(addr string) (*control, error) {
	a, err := ControlAddr(addr)
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", a)
	if err != nil {
		return nil, err
	}
	return &control{c, bufio.NewReader(c)}, nil
}

func (c *control) call(op Op) (st Stats, err error) {
	b, err := json.Marshal(op)
	if err != nil {
		return st, err
	}
	if _, err := c.c.Write(append(b, '\n')); err != nil {
		return st, err
	}
	line, err := c.r.ReadBytes('\n')
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(line, &st); err != nil {
		return st, err
	}
	if st.Err != "" {
		return st, errors.New(st.Err)
	}
	return st, nil
}

// useTLS makes the configuration one of the server's TLS port.
func (c *control) useTLS(config *Config) error {
	st, err := c.call(Op{Op: OpCert})
	if err != nil {
		return err
	}
	config.CA = []byte(st.Cert)
	config.roots = x509.NewCertPool()
	if !config.roots.AppendCertsFromPEM(config.CA) {
		return errors.New("the server's certificate does not parse")
	}
	config.Addr, err = TLSAddr(config.Addr)
	return err
}
