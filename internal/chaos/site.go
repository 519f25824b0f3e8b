package main

import (
	"fmt"
	"net"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
)

// site is a server process, what it says, and the way to it.
type site struct {
	index   int // its place in the order of priority
	truth   *truth
	child   *child
	serving serving
	proxy   *testutil.TCPProxy
	names   *nameserver // nil unless viaDNS
	relay   *relay      // nil unless viaUnix

	silent bool // hushed, and the program stands by there
	deaf   bool // the server may not know of the end of connections or streams
	away   bool // it cannot take orders; what changes it hears when it is back
}

// build starts the process and what stands before it.
func (w *world) build() (err error) {
	if w.variant.tls {
		w.serving = serving{TLS: w.files.serverDir(), Token: true}
	}
	w.truth.change(w.rng, 0.7)
	if w.proxy, err = testutil.NewTCPProxy("127.0.0.1:1"); err != nil {
		return err
	}
	if err := w.startServer(); err != nil {
		return err
	}
	switch w.variant.via {
	case viaDNS:
		w.names, err = newNameserver()
	case viaUnix:
		w.relay, err = newRelay(w.files.socket(), w.proxy.Addr())
	}
	return err
}

func (s *site) close() {
	if s.child != nil {
		_ = s.child.kill() // it ends with us anyway
	}
	if s.proxy != nil {
		s.proxy.Close()
	}
	if s.relay != nil {
		s.relay.close()
	}
	if s.names != nil {
		s.names.close()
	}
}

// startServer starts a server process that serves the truth.
func (w *world) startServer() error {
	c, err := startChild()
	if err != nil {
		return err
	}
	w.child = c
	return w.serve(w.serving)
}

// serve has the process serve, anew if it does already, at a new port.
func (w *world) serve(s serving) error {
	a, err := w.child.do(order{Op: opServe, Serve: &s, State: w.truth.state()})
	if err != nil {
		return err
	}
	w.away = false
	w.truth.confirm()
	w.proxy.SetTarget(a.Addr)
	return nil
}

func (w *world) order(o order) error {
	w.log.add("server %d: order %s code %d", w.index, o.Op, o.Code)
	w.deaf = w.deaf || o.Op == opReset
	_, err := w.child.do(o)
	return err
}

// publish has the server say the truth.
func (w *world) publish() error {
	if w.away {
		return nil
	}
	if _, err := w.child.do(order{Op: opSet, State: w.truth.state()}); err != nil {
		return err
	}
	w.truth.confirm()
	return nil
}

// change changes some resources at the server, or what it will say when it is back.
func (w *world) change(touch float64) error {
	w.truth.change(w.rng, touch)
	return w.publish()
}

// reach is how a program reaches the server.
func (w *world) reach() (s bootstrap.ManagementServer, err error) {
	target := w.proxy.Addr()
	_, port, err := net.SplitHostPort(target)
	if err != nil {
		return s, err
	}
	switch w.variant.via {
	case viaDNS:
		target = fmt.Sprintf("dns://%s/%s:%s", w.names.addr(), serverName, port)
	case viaUnix:
		target = "unix://" + w.files.socket()
	}
	s = bootstrap.ManagementServer{
		URI: target, ChannelCreds: bootstrap.Insecure(), Delta: w.variant.delta, PerType: w.variant.perType,
	}
	if w.variant.tls {
		dir := w.files.clientDir()
		s.ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{
			CACertificateFile: dir + "/ca.pem", CertificateFile: dir + "/cert.pem", PrivateKeyFile: dir + "/key.pem",
			ServerName: serverName,
		}}
		s.CallCreds = []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: w.files.token()}}
	}
	return s, nil
}
