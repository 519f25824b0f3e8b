package chaos

import (
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
)

// fault is a way to break a server, or what stands between the client and the server. Once it is
// healed, nothing stands in the client's way.
type fault struct {
	name  string
	asked bool               // it runs only where it is named
	out   bool               // until it is healed the server cannot be reached
	needs func(variant) bool // nil if every world has what it breaks
	times int                // how often it is done; 0 is once
	steps int                // that the others do after each time
	do    action
	heal  action // after the last time, and when something went wrong; nil if nothing is to be healed
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
		{name: "eof", steps: 3, do: ordered("End", codes.OK)},
		{name: "status", times: int(codes.Unauthenticated), steps: 3, do: func(s *site) { s.order("End", codes.Code(1+s.turn.n)) }},
		{name: "rst-stream", times: lastErrorCode + 1, steps: 3, do: func(s *site) { s.resetStreams(http2.ErrCode(s.turn.n)) }},
		{name: "refused", out: true, steps: aWhile, do: refuseStreams, heal: ordered("Be", Mood{})},
		{name: "mute", steps: 3 * aWhile, heal: ordered("Be", Mood{}),
			do: all(ordered("Be", Mood{Mute: true}), ordered("End", codes.Unavailable))},
		{name: "goaway", steps: aWhile, do: ordered("Slip", Frame{Type: http2.FrameGoAway, Last: math.MaxInt32}), heal: cut},
		{name: "goaway-unprocessed", steps: aWhile, do: func(s *site) {
			s.order("Slip", Frame{Type: http2.FrameGoAway, Code: http2.ErrCode(s.rng.IntN(lastErrorCode + 1))})
		}},
		{name: "max-age", steps: 8 * aWhile, do: served(150 * time.Millisecond), heal: served(0)},
		{name: "torn-frame", steps: aWhile, do: all(ordered("Slip", Frame{}), changed(1))},
		{name: "noise", steps: aWhile, do: ordered("Noise", 0)},
		{name: "rejected", times: 2, steps: aWhile, do: inTurn(spoiled(true), cut), heal: spoiled(false)},
		{name: "storm", times: 40, steps: 2, do: storm},
		{name: "idle", steps: aWhile, do: idle},

		// Connections. A Unix socket that is closed is gone.
		{name: "fin", steps: aWhile, do: func(s *site) { s.proxy.Cut() }},
		{name: "tcp-reset", steps: aWhile, do: func(s *site) { s.proxy.Reset() }},
		{name: "port-closed", out: true, steps: aWhile, do: all(closed(true), cut), heal: closed(false)},
		// Longer than an attempt may take; the client's own bound ends what still hangs.
		{name: "port-silent", out: true, steps: 20 * aWhile, do: all(cut, blackhole(true)), heal: blackhole(false)},
		{name: "slow", times: 2, steps: 3 * aWhile, do: inTurn(delayed(150*time.Millisecond), cut), heal: delayed(0)},
		// Connections stand whose bytes were lost: only keepalive can tell, which takes long.
		{name: "half-open", asked: true, steps: aWhile, do: all(blackhole(true), blackhole(false))},
		{name: "black-hole", asked: true, steps: aWhile, do: blackhole(true),
			heal: all(paused(keepaliveTime+keepaliveTimeout+time.Second), blackhole(false))},

		// Processes: the server's, and the program's own.
		{name: "sigkill", out: true, steps: aWhile, do: killed, heal: started},
		{name: "restart", steps: aWhile, do: served(0)},
		{name: "sigstop", steps: aWhile, do: stopped, heal: continued(time.Second)},
		{name: "sigstop-long", asked: true, steps: aWhile, do: stopped, heal: continued(keepaliveTime + keepaliveTimeout + 2*time.Second)},
		{name: "sigstop-sigkill", times: 2, steps: aWhile, do: inTurn(stopped, killed), heal: started},
		{name: "reborn", out: true, needs: one, times: int(damages), steps: aWhile, do: reborn, heal: closed(false)},
		{name: "clock", times: 2, steps: aWhile, do: inTurn(delayedOrNot, suspended(time.Second)), heal: delayed(0)},
		{name: "clock-long", asked: true, times: 2, steps: aWhile, do: inTurn(delayedOrNot, suspended(resourceTimeout+3*time.Second)), heal: delayed(0)},
		// Whatever is judged by the wall clock is judged anew with each connection. It sets the clock of
		// the whole machine, so that there is to be one such run at a time.
		{name: "wall-clock", asked: true, needs: one, times: 6, steps: 3 * aWhile / 2,
			do: inTurn(clockOff(clockStep), cut, clockOff(-clockStep), cut, clockOff(0), cut), heal: clockOff(0)},

		// Finding the server.
		{name: "dns-gone", needs: dns, steps: 3 * aWhile, do: all(nameserverIs(dnsmessage.RCodeNameError), cut), heal: nameserverIs(dnsmessage.RCodeSuccess)},
		{name: "dns-fails", needs: dns, steps: 3 * aWhile, do: all(nameserverIs(dnsmessage.RCodeServerFailure), cut), heal: nameserverIs(dnsmessage.RCodeSuccess)},
		{name: "dns-silent", needs: dns, steps: 3 * aWhile, do: all(nameserverIs(silent), cut), heal: nameserverIs(dnsmessage.RCodeSuccess)},
		{name: "socket-dead", out: true, needs: unix, steps: aWhile, do: all(closed(true), cut, abandonSocket), heal: closed(false)},

		// Certificates and tokens.
		{name: "certs-rotated", needs: tls, times: 3, steps: aWhile, do: all(rotated(valid, valid), cut)},
		{name: "client-cert-expired", needs: tls, steps: 3 * aWhile, do: all(rotated(expired, valid), cut), heal: rotated(valid, valid)},
		{name: "server-cert-expired", needs: tls, steps: 3 * aWhile, do: all(rotated(valid, expired), cut), heal: rotated(valid, valid)},
		{name: "certs-half-written", needs: tls, times: 2, steps: aWhile, do: certsDamaged((*pki).halve, "ca.pem", "cert.pem", "key.pem"), heal: rotated(valid, valid)},
		{name: "certs-missing", needs: tls, times: 2, steps: aWhile, do: certsDamaged((*pki).remove, "ca.pem", "cert.pem", "key.pem"), heal: rotated(valid, valid)},
		{name: "certs-mismatched", needs: tls, times: 2, steps: aWhile, do: certsDamaged((*pki).mismatch, "key.pem"), heal: rotated(valid, valid)},
		{name: "token-expired", needs: tls, steps: aWhile, do: tokenBroken((*pki).expire), heal: tokenRenewed},
		{name: "token-half-written", needs: tls, steps: aWhile, do: tokenBroken((*pki).halve), heal: tokenRenewed},
		{name: "token-missing", needs: tls, steps: aWhile, do: tokenBroken((*pki).remove), heal: tokenRenewed},

		// A server that another stands in for.
		{name: "hushed", out: true, needs: more, steps: 4 * aWhile, do: hushed, heal: all(unhushed, closed(false))},
	}
}

// pick lists the faults of some names, or without names all but those that have to be asked for.
func pick(names []string) (picked []fault, err error) {
	all := faults()
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(f fault) bool { return f.asked }), nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no fault is called %q", name)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// possible says whether a world has what the fault breaks.
func (f fault) possible(v variant) bool { return f.needs == nil || f.needs(v) }

// run breaks a server, lets the others live with it, and heals it.
func (f fault) run(s *site) {
	if f.heal != nil {
		defer f.heal(s)
	}
	for s.turn.n = range max(1, f.times) {
		f.do(s)
		if !s.live(f.steps) {
			return
		}
	}
}

// all does some actions.
func all(do ...action) action {
	return func(s *site) {
		for _, a := range do {
			a(s)
		}
	}
}

// inTurn does one action each time.
func inTurn(do ...action) action { return func(s *site) { do[s.turn.n](s) } }

func paused(d time.Duration) action { return func(*site) { time.Sleep(d) } }

// cut breaks the connections, one way or another.
func cut(s *site) {
	how := s.rng.IntN(2)
	s.log.add("cut %d", how)
	if how == 0 {
		s.proxy.Cut()
	} else {
		s.proxy.Reset()
	}
}

func ordered(method string, arg any) action { return func(s *site) { s.order(method, arg) } }

func changed(touch float64) action { return func(s *site) { s.change(touch) } }

// resetStreams resets all streams, of which the server does not hear.
func (s *site) resetStreams(code http2.ErrCode) {
	s.deaf = true
	s.order("Slip", Frame{Type: http2.FrameRSTStream, Code: code})
}

// refuseStreams ends all streams, and each new one before its first response.
func refuseStreams(s *site) {
	s.order("Be", Mood{Refuse: codes.Code(1 + s.rng.IntN(16))})
}

// served has the same process serve anew, and end each connection at some age; 0 is never.
func served(age time.Duration) action {
	return func(s *site) {
		how := s.serving
		how.Age = age
		s.serve(how)
	}
}

// spoiled makes the server send resources that are not valid, or valid ones again.
func spoiled(bad bool) action {
	return func(s *site) {
		s.model.spoil(s.truth, s.rng, bad)
		s.publish()
	}
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

// idle lets nothing be watched for so long that the client gives up its connection, and
// cuts what is left.
func idle(s *site) {
	s.program.stopAll()
	time.Sleep(3 * linger)
	cut(s)
}

func closed(on bool) action { return func(s *site) { must(s.t, s.proxy.Refuse(on)) } }

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

// killed ends the server process by SIGKILL.
func killed(s *site) {
	s.away = true
	s.child.kill()
}

// started starts another, which says what changed meanwhile.
func started(s *site) {
	s.child.kill() // the old one lives if something went wrong
	s.startServer()
}

// stopped stops the server process by SIGSTOP. Its connections stand, the kernel accepts
// more, and nobody answers.
func stopped(s *site) {
	s.away = true
	s.child.signal(syscall.SIGSTOP)
}

// continued continues a stopped server process some time later.
func continued(after time.Duration) action {
	return func(s *site) {
		time.Sleep(after)
		s.child.signal(syscall.SIGCONT)
		s.away = false
		s.publish()
	}
}

func nameserverIs(code dnsmessage.RCode) action {
	return func(s *site) { s.names.code.Store(uint32(code)) }
}

// abandonSocket leaves a socket file behind at which nobody listens, as a process does that was killed.
func abandonSocket(s *site) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.files.socket(), Net: "unix"})
	must(s.t, err)
	l.SetUnlinkOnClose(false)
	must(s.t, l.Close())
}

func rotated(client, server validity) action {
	return func(s *site) { s.files.rotate(client, server) }
}

// certsDamaged breaks the client's files, and cuts: what was read before serves on. Then
// the server's own are broken too.
func certsDamaged(damage func(p *pki, file string), names ...string) action {
	in := func(s *site, dir string) {
		for _, name := range names {
			damage(s.files, filepath.Join(dir, name))
		}
		cut(s)
	}
	return inTurn(func(s *site) {
		s.connected()
		in(s, s.files.clientDir())
	}, func(s *site) {
		s.settle()
		in(s, s.files.serverDir())
	})
}

// connected makes sure that the client has a connection, and so has read its files: a
// collection is only complete when the server has answered.
func (s *site) connected() {
	for k, kind := range kinds {
		if kind.typ.FullState() {
			s.program.subscribe(collection, k, "*")
		}
	}
	s.model.use(s.index, false)
	s.await(false)
}

// tokenBroken takes the client's token away once the one that it has in its memory is
// used up.
func tokenBroken(spoil func(p *pki, file string)) action {
	return func(s *site) {
		s.files.writeToken(31 * time.Second) // the client has it read with its next stream, and keeps it for a second
		cut(s)
		s.settle()
		spoil(s.files, s.files.token())
		time.Sleep(1500 * time.Millisecond)
		cut(s)
	}
}

func tokenRenewed(s *site) { s.files.writeToken(tokenLife) }

// hushed is a server that is out of reach until the program was seen to use one after it,
// and then can be reached, and reads what it is asked, and says nothing.
func hushed(s *site) {
	must(s.t, s.proxy.Refuse(true))
	cut(s)
	const most = 300 // steps
	rests := s.rests
	for n := 0; n < most && s.rests == rests; n++ {
		if !s.live(1) {
			return
		}
	}
	if s.rests == rests || s.used < s.index {
		return
	}
	s.silent = true
	s.order("Be", Mood{Hush: true})
	must(s.t, s.proxy.Refuse(false))
}

func unhushed(s *site) {
	s.silent = false
	s.order("Be", Mood{})
}
