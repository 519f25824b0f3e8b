package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
)

// world is a server process and the way to it, with a program that lives in it. It is
// driven by one goroutine.
type world struct {
	variant variant
	rng     *rand.Rand
	log     *journal
	model   *model
	program *program // nil between two programs

	child   *child
	serving serving
	proxy   *testutil.TCPProxy
	files   *pki
	names   *nameserver // nil unless viaDNS
	relay   *relay      // nil unless viaUnix

	away bool // the server cannot take orders; what changes it hears when it is back
}

func newWorld(seed uint64, v variant) (*world, error) {
	log := newJournal()
	w := &world{
		variant: v, rng: rand.New(rand.NewPCG(seed, 0)), log: log, model: newModel(v.delta, log),
	}
	if err := w.build(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) build() (err error) {
	if w.files, err = newPKI(); err != nil {
		return err
	}
	if err := w.files.rotate(valid, valid); err != nil {
		return err
	}
	if w.variant.tls {
		w.serving = serving{TLS: w.files.serverDir(), Token: true}
	}
	w.model.change(w.rng, 0.7)
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

// close ends the world; the program in it must have ended.
func (w *world) close() {
	if w.child != nil {
		_ = w.child.kill() // it ends with us anyway
	}
	if w.proxy != nil {
		w.proxy.Close()
	}
	if w.relay != nil {
		w.relay.close()
	}
	if w.names != nil {
		w.names.close()
	}
	if w.files != nil {
		_ = w.files.remove() // what is left lies among temporary files
	}
}

// startServer starts a server process that serves the model's state.
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
	a, err := w.child.do(order{Op: opServe, Serve: &s, State: w.model.state()})
	if err != nil {
		return err
	}
	w.away = false
	w.model.confirm()
	w.proxy.SetTarget(a.Addr)
	return nil
}

func (w *world) order(o order) error {
	w.log.add("order %s code %d", o.Op, o.Code)
	_, err := w.child.do(o)
	return err
}

// publish has the server say what the model says.
func (w *world) publish() error {
	if w.away {
		return nil
	}
	if _, err := w.child.do(order{Op: opSet, State: w.model.state()}); err != nil {
		return err
	}
	w.model.confirm()
	return nil
}

// change changes some resources at the server, or what it will say when it is back.
func (w *world) change(touch float64) error {
	w.model.change(w.rng, touch)
	return w.publish()
}

// bootstrap is how a program reaches the server.
func (w *world) bootstrap() (*bootstrap.Config, error) {
	target := w.proxy.Addr()
	_, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	switch w.variant.via {
	case viaDNS:
		target = fmt.Sprintf("dns://%s/%s:%s", w.names.addr(), serverName, port)
	case viaUnix:
		target = "unix://" + w.files.socket()
	}
	s := bootstrap.ManagementServer{
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
	return &bootstrap.Config{
		Node: &corev3.Node{Id: "chaos"}, Servers: []bootstrap.ManagementServer{s},
	}, nil
}

// live lets the program live for some steps, in each of which it changes its mind about a
// subscription or the server about its resources.
func (w *world) live(ctx context.Context, steps int) error {
	for range steps {
		if err := w.step(); err != nil {
			return err
		}
		if err := pause(ctx, time.Duration(w.rng.IntN(15))*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) step() error {
	if w.rng.IntN(4) == 0 {
		return w.change(0.1)
	}
	return w.program.step(w.rng)
}

// patience is how long the program may take to know what the server says, once nothing
// stands in its way.
const patience = 40 * time.Second

// await waits until every watch is right. What was told wrong meanwhile is the error.
func (w *world) await(ctx context.Context, calm bool) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		faults, differences, changed := w.model.check(calm)
		switch {
		case len(faults) > 0:
			return errors.New(faults[0])
		case len(differences) == 0:
			return nil
		}
		select {
		case <-changed:
		case <-limit.C:
			return fmt.Errorf("after %v there are %d differences, among them: %s", patience, len(differences), differences[0])
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle waits until every watch is right, has the server change everything, and waits
// again: so it is seen that every subscription stands. It then notes what is known.
func (w *world) settle(ctx context.Context) error {
	if err := w.await(ctx, false); err != nil {
		return err
	}
	w.model.refresh()
	if err := w.publish(); err != nil {
		return err
	}
	if err := w.await(ctx, true); err != nil {
		return fmt.Errorf("after everything changed: %w", err)
	}
	if err := w.program.compare(); err != nil {
		return err
	}
	w.model.settle()
	w.log.add("settled")
	return nil
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
