package main

import (
	"fmt"
	"net"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
)

// site is a server, what it says, and the way to it.
type site struct {
	*world
	index   int // its place in the order of priority
	truth   *truth
	server  interface{ do(order) (answer, error) }
	child   *child // the server's process; nil in memory
	memory  *host  // the server in memory; nil in a process
	serving serving
	proxy   *testutil.TCPProxy // nil in memory
	names   *nameserver        // nil unless viaDNS

	turn   *turn // the fault that lasts; nil if none does
	silent bool  // hushed, and the program stands by there
	deaf   bool  // the server may not know of the end of connections or streams
	away   bool  // it cannot take orders; what changes it hears when it is back

	yield func() bool // lets others live while a fault lasts; false if the fault is to end
}

// String is the server with its fault, for reports.
func (s *site) String() string {
	if s.turn == nil {
		return fmt.Sprint(s.index)
	}
	return fmt.Sprintf("%d:%s", s.index, s.turn.name)
}

// build starts the server and what stands before it.
func (s *site) build() (err error) {
	s.truth.change(s.rng, 0.7)
	if s.variant.via == viaMemory {
		s.memory = &host{}
		s.server = s.memory
		return s.serve(serving{Memory: fmt.Sprint("memory", s.index)})
	}
	if s.variant.tls {
		s.serving = serving{TLS: s.files.serverDir(), Token: true}
	}
	const nowhere = "127.0.0.1:1"
	if s.variant.via == viaUnix {
		s.proxy, err = testutil.NewUnixProxy(s.files.socket(), nowhere)
	} else {
		s.proxy, err = testutil.NewTCPProxy(nowhere)
	}
	if err == nil && s.variant.via == viaDNS {
		s.names, err = newNameserver()
	}
	if err != nil {
		return err
	}
	return s.startServer()
}

func (s *site) close() {
	if s.memory != nil {
		s.memory.server.Close()
	}
	if s.child != nil {
		_ = s.child.kill() // it ends with us anyway
	}
	if s.proxy != nil {
		s.proxy.Close()
	}
	if s.names != nil {
		s.names.close()
	}
}

// startServer starts a server process that serves the truth.
func (s *site) startServer() error {
	c, err := startChild()
	if err != nil {
		return err
	}
	s.child, s.server = c, c
	return s.serve(s.serving)
}

// serve has the server serve, anew if it does already, at a new port.
func (s *site) serve(how serving) error {
	a, err := s.server.do(order{Op: opServe, Serve: &how, State: s.truth.state()})
	if err != nil {
		return err
	}
	s.away = false
	if s.proxy != nil {
		s.proxy.SetTarget(a.Addr)
	}
	return nil
}

func (s *site) order(o order) error {
	s.log.add("server %d: order %s code %d", s.index, o.Op, o.Code)
	s.deaf = s.deaf || o.Op == opReset
	_, err := s.server.do(o)
	return err
}

// publish has the server say the truth.
func (s *site) publish() error {
	if s.away {
		return nil
	}
	_, err := s.server.do(order{Op: opSet, State: s.truth.state()})
	return err
}

// change changes some resources at the server, or what it will say when it is back.
func (s *site) change(touch float64) error {
	s.truth.change(s.rng, touch)
	return s.publish()
}

// reach is how a program reaches the server.
func (s *site) reach() (to bootstrap.ManagementServer, err error) {
	var target string
	switch s.variant.via {
	case viaTCP:
		target = s.proxy.Addr()
	case viaDNS:
		_, port, err := net.SplitHostPort(s.proxy.Addr())
		if err != nil {
			return to, err
		}
		target = fmt.Sprintf("dns://%s/%s:%s", s.names.addr(), serverName, port)
	case viaUnix:
		target = "unix://" + s.proxy.Addr()
	case viaMemory:
		target = s.memory.server.Target()
	}
	to = bootstrap.ManagementServer{
		URI: target, ChannelCreds: bootstrap.Insecure(), Delta: s.variant.delta, PerType: s.variant.perType,
	}
	if s.variant.tls {
		dir := s.files.clientDir()
		to.ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{
			CACertificateFile: dir + "/ca.pem", CertificateFile: dir + "/cert.pem", PrivateKeyFile: dir + "/key.pem",
			ServerName: serverName,
		}}
		to.CallCreds = []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: s.files.token()}}
	}
	return to, nil
}
