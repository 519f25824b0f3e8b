package main

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"google.golang.org/grpc/codes"

	"github.com/xdswatch/xdswatch/testutil"
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

// action is part of a fault at a server, for the nth time.
type action func(ctx context.Context, s *site, n int) error

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
		{name: "eof", steps: 3, do: ordered(order{Op: opEnd})},
		{name: "status", times: int(codes.Unauthenticated), steps: 3, do: coded(opEnd, 1)},
		{name: "rst-stream", times: lastErrorCode + 1, steps: 3, do: coded(opReset, 0)},
		{name: "refused", out: true, steps: aWhile, do: refuseStreams, heal: ordered(order{Op: opRefuse})},
		{name: "mute", steps: 3 * aWhile, heal: ordered(order{Op: opMute}),
			do: ordered(order{Op: opMute, On: true}, order{Op: opEnd, Code: uint32(codes.Unavailable)})},
		{name: "goaway", steps: aWhile, do: ordered(order{Op: opGoAway, Stream: math.MaxInt32}), heal: cut},
		{name: "goaway-unprocessed", steps: aWhile, do: func(_ context.Context, s *site, _ int) error {
			return s.order(order{Op: opGoAway, Code: uint32(s.rng.IntN(lastErrorCode + 1))})
		}},
		{name: "max-age", steps: 8 * aWhile, do: served(150 * time.Millisecond), heal: served(0)},
		{name: "torn-frame", steps: aWhile, do: func(_ context.Context, s *site, _ int) error {
			return errors.Join(s.order(order{Op: opTear}), s.change(1))
		}},
		{name: "noise", steps: aWhile, do: ordered(order{Op: opNoise})},
		{name: "rejected", times: 2, steps: aWhile, do: inTurn(spoiled(true), cut), heal: spoiled(false)},
		{name: "storm", times: 40, steps: 2, do: storm},
		{name: "idle", steps: aWhile, do: idle},

		// Connections. A Unix socket that is closed is gone.
		{name: "fin", steps: aWhile, do: does(func(s *site) { s.proxy.Cut() })},
		{name: "tcp-reset", steps: aWhile, do: does(func(s *site) { s.proxy.Reset() })},
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
		{name: "certs-half-written", needs: tls, times: 2, steps: aWhile,
			do: certsDamaged(func(dir string) error { return halve(certFiles(dir)...) }), heal: rotated(valid, valid)},
		{name: "certs-missing", needs: tls, times: 2, steps: aWhile,
			do: certsDamaged(func(dir string) error { return removeAll(certFiles(dir)) }), heal: rotated(valid, valid)},
		{name: "certs-mismatched", needs: tls, times: 2, steps: aWhile, do: certsDamaged(mismatch), heal: rotated(valid, valid)},
		{name: "token-expired", needs: tls, steps: aWhile,
			do: tokenBroken(func(p *pki) error { return p.writeToken(-time.Minute) }), heal: tokenRenewed},
		{name: "token-half-written", needs: tls, steps: aWhile,
			do: tokenBroken(func(p *pki) error { return halve(p.token()) }), heal: tokenRenewed},
		{name: "token-missing", needs: tls, steps: aWhile,
			do: tokenBroken(func(p *pki) error { return os.Remove(p.token()) }), heal: tokenRenewed},

		// A server that another stands in for.
		{name: "hushed", out: true, needs: more, steps: 4 * aWhile, do: hushed, heal: all(unhushed, closed(false))},
	}
}

// pick lists the faults that a world can have, of those named; of all, without those that have to
// be asked for, if none is named.
func pick(p plan) (out []fault) {
	for _, f := range faults() {
		wanted := !f.asked
		if len(p.only) > 0 {
			wanted = slices.Contains(p.only, f.name)
		}
		if wanted && (f.needs == nil || f.needs(p.variant)) {
			out = append(out, f)
		}
	}
	return out
}

// run breaks a server, lets the others live with it, and heals it.
func (f fault) run(ctx context.Context, s *site) (err error) {
	if f.heal != nil {
		defer func() { err = errors.Join(err, f.heal(ctx, s, 0)) }()
	}
	for n := range max(1, f.times) {
		if err := f.do(ctx, s, n); err != nil {
			return err
		}
		if err := s.live(f.steps); err != nil {
			return err
		}
	}
	return nil
}

// all does some actions, up to the first that fails.
func all(do ...action) action {
	return func(ctx context.Context, s *site, n int) error {
		for _, a := range do {
			if err := a(ctx, s, n); err != nil {
				return err
			}
		}
		return nil
	}
}

// does is an action that cannot fail.
func does(f func(*site)) action {
	return func(_ context.Context, s *site, _ int) error { f(s); return nil }
}

// inTurn does one action each time.
func inTurn(do ...action) action {
	return func(ctx context.Context, s *site, n int) error { return do[n](ctx, s, n) }
}

func paused(d time.Duration) action {
	return func(ctx context.Context, _ *site, _ int) error { return pause(ctx, d) }
}

// cut breaks the connections, one way or another.
func cut(_ context.Context, s *site, _ int) error {
	how := s.rng.IntN(2)
	s.log.add("cut %d", how)
	if how == 0 {
		s.proxy.Cut()
	} else {
		s.proxy.Reset()
	}
	return nil
}

func ordered(orders ...order) action {
	return func(_ context.Context, s *site, _ int) error {
		for _, o := range orders {
			if err := s.order(o); err != nil {
				return err
			}
		}
		return nil
	}
}

// coded gives an order with each code, from the first on.
func coded(op op, first int) action {
	return func(_ context.Context, s *site, n int) error { return s.order(order{Op: op, Code: uint32(first + n)}) }
}

// refuseStreams ends all streams, and each new one before its first response.
func refuseStreams(_ context.Context, s *site, _ int) error {
	code := uint32(1 + s.rng.IntN(16))
	return errors.Join(s.order(order{Op: opRefuse, Code: code}), s.order(order{Op: opEnd, Code: code}))
}

// served has the same process serve anew, and end each connection at some age; 0 is never.
func served(age time.Duration) action {
	return func(_ context.Context, s *site, _ int) error {
		how := s.serving
		how.Age = age
		return s.serve(how)
	}
}

// spoiled makes the server send resources that are not valid, or valid ones again.
func spoiled(bad bool) action {
	return func(_ context.Context, s *site, _ int) error {
		s.truth.spoil(s.rng, bad)
		return s.publish()
	}
}

// storm breaks streams or connections.
func storm(ctx context.Context, s *site, n int) error {
	switch s.rng.IntN(4) {
	case 0:
		return cut(ctx, s, n)
	case 1:
		return s.order(order{Op: opReset, Code: 8})
	default:
		return s.order(order{Op: opEnd, Code: uint32(s.rng.IntN(17))})
	}
}

// idle lets nothing be watched for so long that the client gives up its connection, and
// cuts what is left.
func idle(ctx context.Context, s *site, n int) error {
	s.program.stopAll()
	if err := pause(ctx, 3*linger); err != nil {
		return err
	}
	return cut(ctx, s, n)
}

func closed(on bool) action {
	return func(_ context.Context, s *site, _ int) error { return s.proxy.Refuse(on) }
}

// blackhole swallows everything, and nobody learns that connections end.
func blackhole(on bool) action {
	return does(func(s *site) {
		s.deaf = true
		s.proxy.Blackhole(on)
	})
}

func delayed(d time.Duration) action { return does(func(s *site) { s.proxy.Delay(d) }) }

// delayedOrNot lets requests go out whose answers come late.
func delayedOrNot(_ context.Context, s *site, _ int) error {
	s.proxy.Delay(time.Duration(s.rng.IntN(2)) * 200 * time.Millisecond)
	return nil
}

// killed ends the server process by SIGKILL.
func killed(_ context.Context, s *site, _ int) error {
	s.away = true
	return s.child.kill()
}

// started starts another, which says what changed meanwhile.
func started(_ context.Context, s *site, _ int) error {
	return errors.Join(s.child.kill(), s.startServer()) // the old one lives if something went wrong
}

// stopped stops the server process by SIGSTOP. Its connections stand, the kernel accepts
// more, and nobody answers.
func stopped(_ context.Context, s *site, _ int) error {
	s.away = true
	return s.child.signal(syscall.SIGSTOP)
}

// continued continues a stopped server process some time later.
func continued(after time.Duration) action {
	return func(ctx context.Context, s *site, _ int) error {
		err := errors.Join(pause(ctx, after), s.child.signal(syscall.SIGCONT))
		s.away = false
		return errors.Join(err, s.publish())
	}
}

func nameserverIs(code dnsmessage.RCode) action { return does(func(s *site) { s.names.be(code) }) }

// abandonSocket leaves a socket file behind at which nobody listens, as a process does that was killed.
func abandonSocket(_ context.Context, s *site, _ int) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.files.socket(), Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return l.Close()
}

func rotated(client, server validity) action {
	return func(_ context.Context, s *site, _ int) error { return s.files.rotate(client, server) }
}

// certsDamaged breaks the client's files, and cuts: what was read before serves on. Then
// the server's own are broken too.
func certsDamaged(damage func(dir string) error) action {
	return func(ctx context.Context, s *site, n int) error {
		dir, ready := s.files.clientDir(), s.connected
		if n == 1 {
			dir, ready = s.files.serverDir(), s.settle
		}
		if err := ready(ctx); err != nil {
			return err
		}
		return errors.Join(damage(dir), cut(ctx, s, n))
	}
}

// connected makes sure that the client has a connection, and so has read its files: a
// collection is only complete when the server has answered.
func (s *site) connected(ctx context.Context) error {
	for k := range s.model.kinds {
		if s.model.kinds[k].typ.FullState() {
			if err := s.program.subscribe(collection, k, "*"); err != nil {
				return err
			}
		}
	}
	s.model.use(s.index, false)
	return s.await(ctx, false)
}

func certFiles(dir string) []string {
	return []string{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
}

func removeAll(files []string) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, os.Remove(f))
	}
	return errors.Join(errs...)
}

// mismatch leaves a key that is not of its certificate.
func mismatch(dir string) error {
	ca, err := testutil.NewCA()
	if err != nil {
		return err
	}
	cert, err := ca.Issue(testutil.CertOptions{})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "key.pem"), cert.KeyPEM, 0o600)
}

// tokenBroken takes the client's token away once the one that it has in its memory is
// used up.
func tokenBroken(spoil func(*pki) error) action {
	soon := func(_ context.Context, s *site, _ int) error {
		// The client has this one read with its next stream, and keeps it for a second.
		return s.files.writeToken(31 * time.Second)
	}
	settled := func(ctx context.Context, s *site, _ int) error { return s.settle(ctx) }
	spoilt := func(_ context.Context, s *site, _ int) error { return spoil(s.files) }
	return all(soon, cut, settled, spoilt, paused(1500*time.Millisecond), cut)
}

func tokenRenewed(_ context.Context, s *site, _ int) error { return s.files.writeToken(tokenLife) }

// hushed is a server that is out of reach until the program was seen to use one after it,
// and then can be reached, and reads what it is asked, and says nothing.
func hushed(ctx context.Context, s *site, n int) error {
	if err := all(closed(true), cut)(ctx, s, n); err != nil {
		return err
	}
	const most = 300 // steps
	rests := s.rests
	for n := 0; n < most && s.rests == rests; n++ {
		if err := s.live(1); err != nil {
			return err
		}
	}
	if s.rests == rests || s.used < s.index {
		return nil
	}
	s.silent = true
	return errors.Join(s.order(order{Op: opHush, On: true}), s.proxy.Refuse(false))
}

func unhushed(_ context.Context, s *site, _ int) error {
	s.silent = false
	return s.order(order{Op: opHush})
}
