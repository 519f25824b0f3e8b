package chaos

import (
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	"github.com/xdswatch/xdswatch/internal/nameserver"
)

// fault is a way to break a server, or what stands between the client and the server.
type fault struct {
	name  string
	asked bool               // it runs only where it is named
	out   bool               // the server cannot be reached until it is mended
	needs func(variant) bool // nil if every world has what it breaks
	do    []action           // one after the other, before the server is mended
	steps int                // that the others do after each action
}

// action is part of a fault at a server.
type action func(*site)

// aWhile gives a fault the time to hit the program at work, and what follows.
const aWhile = 12 // steps

// lastErrorCode is HTTP_1_1_REQUIRED (RFC 9113, section 7).
const lastErrorCode = 0xd

// faults is all there are.
func faults() []fault {
	one := func(v variant) bool { return v.spares == 0 }
	more := func(v variant) bool { return v.spares > 0 }
	dns := func(v variant) bool { return v.via == viaDNS }
	unix := func(v variant) bool { return v.via == viaUnix }
	tls := func(v variant) bool { return v.tls }
	return []fault{
		// Streams of gRPC and HTTP/2.
		{name: "eof", steps: 3, do: inTurn(ordered("End", codes.OK))},
		{name: "status", steps: 3, do: times(int(codes.Unauthenticated), func(s *site) { s.order("End", codes.Code(1+s.turn.n)) })},
		{name: "rst-stream", steps: 3, do: times(lastErrorCode+1, func(s *site) { s.resetStreams(http2.ErrCode(s.turn.n)) })},
		{name: "refused", out: true, steps: aWhile, do: inTurn(func(s *site) { s.order("Be", Mood{Refuse: codes.Code(1 + s.rng.IntN(16))}) })},
		{name: "mute", steps: 3 * aWhile, do: inTurn(all(ordered("Be", Mood{Mute: true}), ordered("End", codes.Unavailable)))},
		{name: "goaway", steps: aWhile, do: inTurn(ordered("Slip", Frame{Type: http2.FrameGoAway, Last: math.MaxInt32}), cut)},
		{name: "goaway-unprocessed", steps: aWhile, do: inTurn(func(s *site) {
			s.order("Slip", Frame{Type: http2.FrameGoAway, Code: http2.ErrCode(s.rng.IntN(lastErrorCode + 1))})
		})},
		{name: "max-age", steps: 4 * aWhile, do: inTurn(served(150*time.Millisecond), paused(0), served(0))},
		{name: "torn-frame", steps: aWhile, do: inTurn(all(ordered("Slip", Frame{}), func(s *site) { s.change(1) }))},
		{name: "noise", steps: aWhile, do: inTurn(ordered("Noise", 0))},
		{name: "rejected", steps: aWhile, do: inTurn(rejected, cut, func(s *site) { s.edit(spoiled(false)) })},
		{name: "storm", steps: 2, do: times(40, storm)},
		{name: "idle", steps: aWhile, do: inTurn(idle)},

		// Connections. A Unix socket that is closed is gone.
		{name: "fin", steps: aWhile, do: inTurn(func(s *site) { s.proxy.Cut() })},
		{name: "tcp-reset", steps: aWhile, do: inTurn(func(s *site) { s.proxy.Reset() })},
		{name: "port-closed", out: true, steps: aWhile, do: inTurn(closed)},
		// Longer than an attempt may take; the client's own bound ends what still hangs.
		{name: "port-silent", out: true, steps: 20 * aWhile, do: inTurn(all(cut, blackhole(true)))},
		{name: "slow", steps: 3 * aWhile, do: inTurn(delayed(150*time.Millisecond), cut)},
		// Connections stand whose bytes were lost: only keepalive can tell, which takes long.
		{name: "half-open", asked: true, steps: aWhile, do: inTurn(all(blackhole(true), blackhole(false)))},
		{name: "black-hole", asked: true, steps: aWhile, do: inTurn(blackhole(true), paused(keepaliveTime+keepaliveTimeout+time.Second))},

		// Processes: the server's, and the program's own.
		{name: "sigkill", out: true, steps: aWhile, do: inTurn((*site).kill)},
		{name: "restart", steps: aWhile, do: inTurn(served(0))},
		{name: "sigstop", steps: aWhile, do: inTurn(stopped, paused(time.Second))},
		{name: "sigstop-long", asked: true, steps: aWhile, do: inTurn(stopped, paused(keepaliveTime+keepaliveTimeout+2*time.Second))},
		{name: "sigstop-sigkill", steps: aWhile, do: inTurn(stopped, (*site).kill)},
		{name: "reborn", out: true, needs: one, steps: aWhile, do: times(int(damages), reborn)},
		{name: "clock", steps: aWhile, do: inTurn(delayedOrNot, ordered("Suspend", time.Second))},
		{name: "clock-long", asked: true, steps: aWhile, do: inTurn(delayedOrNot, ordered("Suspend", resourceTimeout+3*time.Second))},
		// Whatever is judged by the wall clock is judged anew with each connection. It sets the clock of
		// the whole machine, so that there is to be one such run at a time.
		{name: "wall-clock", asked: true, needs: one, steps: 3 * aWhile / 2,
			do: inTurn(clockOff(clockStep), cut, clockOff(-clockStep), cut, clockOff(0), cut)},

		// Finding the server.
		{name: "dns-gone", needs: dns, steps: 3 * aWhile, do: inTurn(nameserverIs(dnsmessage.RCodeNameError))},
		{name: "dns-fails", needs: dns, steps: 3 * aWhile, do: inTurn(nameserverIs(dnsmessage.RCodeServerFailure))},
		{name: "dns-silent", needs: dns, steps: 3 * aWhile, do: inTurn(nameserverIs(nameserver.Silent))},
		{name: "socket-dead", out: true, needs: unix, steps: aWhile, do: inTurn(all(closed, abandonSocket))},

		// Certificates and tokens.
		{name: "certs-rotated", needs: tls, steps: aWhile, do: times(3, rotated(false, false))},
		{name: "client-cert-expired", needs: tls, steps: 3 * aWhile / 2, do: inTurn(rotated(true, false), paused(0), rotated(false, false))},
		{name: "server-cert-expired", needs: tls, steps: 3 * aWhile / 2, do: inTurn(rotated(false, true), paused(0), rotated(false, false))},
		{name: "certs-half-written", needs: tls, steps: aWhile, do: certsDamaged((*pki).halve, "ca.pem", "cert.pem", "key.pem")},
		{name: "certs-missing", needs: tls, steps: aWhile, do: certsDamaged((*pki).remove, "ca.pem", "cert.pem", "key.pem")},
		{name: "certs-mismatched", needs: tls, steps: aWhile, do: certsDamaged((*pki).mismatch, "key.pem")},
		{name: "token-expired", needs: tls, steps: aWhile, do: tokenBroken((*pki).expire)},
		{name: "token-half-written", needs: tls, steps: aWhile, do: tokenBroken((*pki).halve)},
		{name: "token-missing", needs: tls, steps: aWhile, do: tokenBroken((*pki).remove)},

		// A server that another stands in for.
		{name: "hushed", out: true, needs: more, steps: 3 * aWhile, do: inTurn(closed, hushed)},
	}
}

// pick lists the faults of some names, or without names all but those that have to be asked for.
func pick(names []string) ([]fault, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(faults(), func(f fault) bool { return f.asked }), nil
	}
	picked := slices.DeleteFunc(faults(), func(f fault) bool { return !slices.Contains(names, f.name) })
	if len(picked) != len(names) {
		return nil, fmt.Errorf("there are %d faults of the names %q", len(picked), names)
	}
	return picked, nil
}

// possible says whether a world has what the fault breaks.
func (f fault) possible(v variant) bool { return f.needs == nil || f.needs(v) }

// turn is a fault that lasts at a site. What it does takes turns with the program, the servers and
// the other faults.
type turn struct {
	fault
	n    int // actions that were done
	wait int // steps that the others do before the next
}

// begin begins a fault.
func (s *site) begin(f fault) {
	s.files.writeToken(tokenLife)
	s.sequence = append(s.sequence, fmt.Sprintf("%d:%s", s.index, f.name))
	s.log.Printf("fault %s begins at server %d", f.name, s.index)
	s.turn = &turn{fault: f}
	s.resume()
}

// resume has the fault at a server do its next action when it is time, and ends it after the last.
func (s *site) resume() {
	t := s.turn
	t.wait--
	switch {
	case t.wait >= 0:
	case t.n < len(t.do):
		t.do[t.n](s)
		t.n++
		t.wait = t.steps
	default:
		s.mend()
		s.end()
	}
}

// end ends the fault at a server that is mended.
func (s *site) end() {
	s.log.Printf("fault %s has ended at server %d", s.turn.name, s.index)
	s.turn, s.reached = nil, true
	s.leaves(s.sites[s.index+1:])
}

// leaves notes that the program may not stand by any more at those of the servers that are silent: when it comes to
// them again, it waits there.
func (w *world) leaves(sites []*site) {
	for _, s := range sites {
		if s.silent {
			s.silent, s.turn.out = false, false
		}
	}
}

// mend takes away what a fault has left at the server and on the way to it: nothing then stands in
// the client's way.
func (s *site) mend() {
	must(s.t, s.proxy.Refuse(false))
	s.proxy.Blackhole(false)
	s.proxy.Delay(0)
	if s.names != nil {
		s.names.Answer(dnsmessage.RCodeSuccess)
	}
	s.files.writeToken(tokenLife)
	s.silent = false
	if s.child.ProcessState != nil { // it was killed
		s.startServer()
		return
	}
	s.signal(syscall.SIGCONT)
	s.away = false
	s.order("Be", Mood{})
	s.publish()
}

// inTurn does some actions one after the other.
func inTurn(do ...action) []action { return do }

// times does one several times.
func times(n int, do action) []action { return slices.Repeat([]action{do}, n) }

// all does some at once.
func all(do ...action) action {
	return func(s *site) {
		for _, a := range do {
			a(s)
		}
	}
}

func paused(d time.Duration) action { return func(*site) { time.Sleep(d) } }

// cut breaks the connections, one way or another.
func cut(s *site) {
	how := s.rng.IntN(2)
	s.log.Printf("cut %d", how)
	if how == 0 {
		s.proxy.Cut()
	} else {
		s.proxy.Reset()
	}
}

func ordered(method string, arg any) action { return func(s *site) { s.order(method, arg) } }

// resetStreams resets all streams, of which the server does not hear.
func (s *site) resetStreams(code http2.ErrCode) {
	s.deaf = true
	s.order("Slip", Frame{Type: http2.FrameRSTStream, Code: code})
}

// served has the same process serve anew, and end each connection at some age; 0 is never.
func served(age time.Duration) action {
	return func(s *site) { s.serve(age) }
}

// rejected makes the server send clusters that are not valid. Where the program uses the server for sure, each response
// that has some is seen to be NACKed, and the program to count them.
func rejected(s *site) {
	if s.spares > 0 {
		s.edit(spoiled(true))
		return
	}
	s.connected()
	nacks, refused := s.asked().NACKs, s.program.refused.Load()
	s.edit(spoiled(true))
	must(s.t, eventually(patience, func() error {
		if s.asked().NACKs == nacks || s.program.refused.Load() == refused {
			return errors.New("the program has not refused clusters that are not valid")
		}
		return nil
	}))
}

// storm breaks streams or connections.
func storm(s *site) {
	switch s.rng.IntN(4) {
	case 0:
		cut(s)
	case 1:
		s.resetStreams(http2.ErrCodeCancel)
	default:
		s.order("End", codes.Code(s.rng.IntN(17)))
	}
}

// idle lets nothing be watched for so long that the client gives up its connection and forgets which
// servers were out of reach, and cuts what is left.
func idle(s *site) {
	s.program.stopAll()
	time.Sleep(3 * linger)
	for _, other := range s.sites {
		other.reached = true // as far as it knows
	}
	s.leaves(s.sites)
	cut(s)
}

// closed ends all connections and takes no more.
func closed(s *site) {
	must(s.t, s.proxy.Refuse(true))
	cut(s)
}

// blackhole swallows everything, and nobody learns that connections end.
func blackhole(on bool) action {
	return func(s *site) {
		s.deaf = true
		s.proxy.Blackhole(on)
	}
}

func delayed(d time.Duration) action { return func(s *site) { s.proxy.Delay(d) } }

// delayedOrNot lets requests go out whose answers come late.
func delayedOrNot(s *site) { s.proxy.Delay(time.Duration(s.rng.IntN(2)) * 200 * time.Millisecond) }

// stopped stops the server process by SIGSTOP. Its connections stand, the kernel accepts
// more, and nobody answers.
func stopped(s *site) {
	s.away = true
	s.signal(syscall.SIGSTOP)
}

// nameserverIs has the client look for its server anew, by a nameserver that answers so.
func nameserverIs(code dnsmessage.RCode) action {
	return func(s *site) {
		s.names.Answer(code)
		cut(s)
	}
}

// abandonSocket leaves a socket file behind at which nobody listens, as a process does that was killed.
func abandonSocket(s *site) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.files.socket(), Net: "unix"})
	must(s.t, err)
	l.SetUnlinkOnClose(false)
	must(s.t, l.Close())
}

// rotated replaces all certificates, by ones that have expired on some side, and cuts: what was read
// before serves on.
func rotated(clientExpired, serverExpired bool) action {
	return func(s *site) {
		s.files.rotate(clientExpired, serverExpired)
		cut(s)
	}
}

// certsDamaged breaks the client's files, and cuts. Then the server's own are broken too, and in the
// end all are new.
func certsDamaged(damage func(p *pki, file string), names ...string) []action {
	in := func(s *site, dir string) {
		for _, name := range names {
			damage(s.files, filepath.Join(dir, name))
		}
		cut(s)
	}
	return inTurn(func(s *site) {
		s.connected()
		in(s, s.files.clientDir)
	}, func(s *site) {
		s.settle()
		in(s, s.files.serverDir)
	}, rotated(false, false))
}

// connected makes sure that the client has a connection, and so has read its files: a
// collection is only complete when the server has answered.
func (s *site) connected() {
	for k, kind := range kinds {
		if kind.typ.FullState() {
			s.program.subscribe(collection, k, "*")
		}
	}
	s.await()
}

// tokenBroken takes the client's token away once the one that it has in its memory is
// used up.
func tokenBroken(spoil func(p *pki, file string)) []action {
	return inTurn(func(s *site) {
		s.files.writeToken(31 * time.Second) // the client has it read with its next stream, and keeps it for a second
		cut(s)
		s.settle()
		spoil(s.files, s.files.token())
		time.Sleep(1500 * time.Millisecond)
		cut(s)
	})
}

// hushed has a server that is out of reach be reached again if the program uses one after it, for some names, and read
// what it is asked, and say nothing.
func hushed(s *site) {
	if s.precedes(ofPlain) || s.precedes(ofAuthority) {
		s.silent = true
		s.order("Be", Mood{Hush: true})
		must(s.t, s.proxy.Refuse(false))
	}
}
