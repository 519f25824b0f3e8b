package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/transport"
)

// The making of a connection runs beside the loop: it may ask the client, and while it takes
// its time other servers are heard. Who wanted it may be gone when it is made.
func TestSlowConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := newWireConn(), newWireConn()
		var e *Engine
		e = startServers(t,
			Server{URI: "slow", Connect: func() (transport.Conn, error) {
				if n := len(slices.Collect(e.Resources())); n != 2 {
					t.Errorf("the dump has %d resources", n)
				}
				time.Sleep(time.Minute)
				return slow, nil
			}},
			Server{URI: "quick", Connect: func() (transport.Conn, error) { return quick, nil }},
		)
		kind, s := (&slowKind{}).kind(), &sink{}
		a, b := watchOf(kind, &sink{}, "a"), watchOf(kind, s, "b")
		b.Source = 1
		began := time.Now()
		e.Start(a, b)
		st := <-quick.streams
		st.in <- things(t, "1", "b")
		if told := s.told(); time.Since(began) != 0 || len(told) == 0 || told[0] != "b=B" {
			t.Errorf("told %q after %v", told, time.Since(began))
		}
		e.Post(machine.Stop{Watch: a})
		<-slow.closed
		if took := time.Since(began); took != time.Minute {
			t.Errorf("closed after %v", took)
		}
	})
}

// A panic of the program's while a stream is opened is the failure of the attempt.
func TestConnectPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := newWireConn()
		attempts := 0
		e := startWith(t, func() (transport.Conn, error) {
			switch attempts++; attempts {
			case 1:
				panic("on purpose")
			case 2:
				return nil, nil
			}
			return conn, nil
		})
		s := &sink{}
		began := time.Now()
		e.Start(watchOf((&slowKind{}).kind(), s, "a"))
		st := <-conn.streams
		if waited := time.Since(began); waited != 2*time.Second {
			t.Errorf("a stream stands after %v", waited)
		}
		st.in <- things(t, "1", "a")
		if told := s.told(); !slices.Equal(told, []string{"3 a", "flush true", "3 a", "flush true", "a=A", "flush true"}) {
			t.Errorf("told %q", told)
		}
	})
}

// A stream that is given up for another of its server, as where added names stay unheard, leaves
// the connection to it, though it was the only one.
func TestRestartKeepsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, made := make(chan *wireStream, 2), 0
		server := Server{URI: "test", Connect: func() (transport.Conn, error) {
			made++
			return &wireConn{streams: streams, closed: make(chan struct{})}, nil
		}}
		server.PerType = true
		e := startServers(t, server)
		kind := (&slowKind{}).kind()
		e.Start(watchOf(kind, &sink{}, "a"))
		first := <-streams
		first.in <- things(t, "1", "a")
		synctest.Wait()
		e.Start(watchOf(kind, &sink{}, "b")) // of which the server says nothing
		<-streams
		synctest.Wait()
		if first.ctx.Err() == nil || made != 1 || connections(e) != 1 {
			t.Errorf("the first stream: %v; %d connections were made, %d are open", first.ctx.Err(), made, connections(e))
		}
	})
}

// connections counts those that are kept.
func connections(e *Engine) (n int) {
	e.ask(func() {
		for _, s := range *e.servers.Load() {
			if s.conn != nil {
				n++
			}
		}
	})
	return n
}
