package chaos

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/nameserver"
	"github.com/xdswatch/xdswatch/testutil"
)

// site is a server, what it says, and the way to it.
type site struct {
	*world
	index int    // in order of priority
	uri   string // that events name
	facts map[string]*fact

	orders *rpc.Client        // of the server's host
	child  *exec.Cmd          // the server's process; nil in memory
	memory *host              // the server in memory; nil in a process
	proxy  *testutil.TCPProxy // nil in memory
	names  *nameserver.Server // nil unless viaDNS

	turn    *turn // the fault that lasts; nil if none does
	reached bool  // it could be when the world last rested, or can be again
	silent  bool  // hushed, and the program stands by there
	deaf    bool  // the server may not know of the end of connections or streams
	away    bool  // it cannot take orders; what changes it hears when it is back
}

// build starts the server and what stands before it.
func (s *site) build() {
	s.change(0.7)
	if s.via == viaMemory {
		s.memory = &host{}
		ours, its := net.Pipe()
		go s.memory.obey(its)
		s.orders = rpc.NewClient(ours)
		s.serve(0)
		s.uri = s.memory.server.Target()
		s.t.Cleanup(func() {
			s.memory.server.Close()
			s.orders.Close()
		})
		return
	}
	var err error
	const nowhere = "127.0.0.1:1"
	if s.via == viaUnix {
		s.proxy, err = testutil.NewUnixProxy(s.files.socket(), nowhere)
	} else {
		s.proxy, err = testutil.NewTCPProxy(nowhere)
	}
	must(s.t, err)
	s.t.Cleanup(s.proxy.Close)
	s.uri = s.proxy.Addr()
	switch s.via {
	case viaUnix:
		s.uri = "unix://" + s.uri
	case viaDNS:
		s.names = nameserver.Start(s.t)
		_, port, err := net.SplitHostPort(s.uri)
		must(s.t, err)
		s.uri = fmt.Sprintf("dns://%s/%s:%s", s.names.Addr, serverName, port)
	}
	s.startServer()
	s.t.Cleanup(s.kill)
}

// pipe is the two directions of a connection.
type pipe struct {
	io.Reader
	io.WriteCloser
}

// startServer starts a server process.
func (s *site) startServer() {
	self, err := os.Executable()
	must(s.t, err)
	s.child = exec.Command(self, serveArg)
	s.child.Stderr = os.Stderr
	in, err := s.child.StdinPipe()
	must(s.t, err)
	out, err := s.child.StdoutPipe()
	must(s.t, err)
	must(s.t, s.child.Start())
	s.orders = rpc.NewClient(pipe{out, in})
	s.serve(0)
}

// kill ends the server process with SIGKILL and waits for it. A second call does nothing.
func (s *site) kill() {
	s.away = true
	if err := s.child.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		must(s.t, err)
	}
	_ = s.child.Wait()   // "signal: killed"
	_ = s.orders.Close() // by then it may be closed already
}

func (s *site) signal(sig syscall.Signal) { must(s.t, s.child.Process.Signal(sig)) }

// serve has the server serve, anew if it does already, at a new port. It ends each connection at
// some age; 0 is never.
func (s *site) serve(age time.Duration) {
	how := Serving{Age: age}
	if s.tls {
		how.TLS = s.files.serverDir
	}
	if s.memory != nil {
		how.Memory = fmt.Sprint("memory", s.index)
	}
	var addr string
	must(s.t, s.orders.Call("host.Serve", how, &addr))
	s.away = false
	s.publish()
	if s.proxy != nil {
		s.proxy.SetTarget(addr)
	}
}

// order has a method of the host called.
func (s *site) order(method string, arg any) {
	s.log.Printf("server %d: order %s %v", s.index, method, arg)
	must(s.t, s.orders.Call("host."+method, arg, nil))
}

// asked is what the server is asked.
func (s *site) asked() (a Asked) {
	must(s.t, s.orders.Call("host.Asked", 0, &a))
	return a
}

// publish has the server say what it is to say.
func (s *site) publish() {
	if !s.away {
		must(s.t, s.orders.Call("host.Set", s.facts, nil))
	}
}

// edit changes resources at the server, or what it will say when it is back.
func (s *site) edit(each edit) {
	s.listen()
	for _, name := range slices.Sorted(maps.Keys(s.facts)) { // so that choices follow from the seed
		if f := s.facts[name]; each(f) {
			f.Rev = len(s.said)
			s.said = append(s.said, f)
		}
	}
	s.publish()
}

// change touches some of them, or with 1 all.
func (s *site) change(touch float64) { s.edit(s.changed(touch)) }

// reach is how a program reaches the server.
func (s *site) reach() bootstrap.ManagementServer {
	to := bootstrap.ManagementServer{
		URI: s.uri, ChannelCreds: bootstrap.Insecure(), Delta: s.delta, PerType: s.perType,
	}
	if s.tls {
		dir := s.files.clientDir
		to.ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{
			CACertificateFile: dir + "/ca.pem", CertificateFile: dir + "/cert.pem", PrivateKeyFile: dir + "/key.pem",
			ServerName: serverName,
		}}
		to.CallCreds = []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: s.files.token()}}
	}
	return to
}
