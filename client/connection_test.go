package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/transport"
)

// A stream of the program's own shares the connection with the client's streams, and keeps it.
func TestConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		conns := client.CountConns(r.c)
		w, _ := r.watch("a")
		r.accept()
		x, err := r.c.Connect(r.srv.Target())
		must(t, err)
		s, err := x.Open(t.Context(), "/my.Service/Method")
		must(t, err)
		must(t, s.Send([]byte("own")))
		r.accept()
		w.Stop()
		time.Sleep(time.Minute)
		if n := conns.Open.Load(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
		must(t, s.(transport.SendCloser).CloseSend())
		s.Close()
		x.Close()
		x.Close()
		synctest.Wait()
		if n := conns.Open.Load(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// The end of the client ends streams and attempts.
func TestConnectionOfClosedClient(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		x, err := r.c.Connect(r.srv.Target())
		must(t, err)
		s, err := x.Open(t.Context(), "/my.Service/Method")
		must(t, err)
		r.c.Close()
		if _, err := s.Recv(); err == nil {
			t.Error("the stream lives")
		}
		if _, err := x.Open(t.Context(), "/my.Service/Method"); err == nil {
			t.Error("a stream of a closed client")
		}
		if _, err := r.c.Connect(r.srv.Target()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("Connect: %v", err)
		}
	})
}

func TestConnectErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for uri, want := range map[string]string{
			"nobody":       `the client has no server "nobody"`,
			"file:///dir/": `is not reached over gRPC`,
		} {
			if _, err := r.c.Connect(uri); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", uri, err)
			}
		}
	}, func(c *client.Config) {
		c.Bootstrap.Servers = append(c.Bootstrap.Servers, bootstrap.ManagementServer{
			URI: "file:///dir/", Carrier: &bootstrap.File{Path: "/dir/x"},
		})
	})
}

// An attempt ends with its context, and the waits between attempts grow.
func TestConnectionBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		x, err := r.c.Connect(r.srv.Target())
		must(t, err)
		defer x.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := x.Open(ctx, "/my.Service/Method"); !errors.Is(err, context.Canceled) {
			t.Errorf("Open: %v", err)
		}
		first, second := x.Pause(false), x.Pause(false)
		if first < 250*time.Millisecond || first > 750*time.Millisecond || second < 400*time.Millisecond || second > 1200*time.Millisecond {
			t.Errorf("the waits are %v and %v", first, second)
		}
		if served := x.Pause(true); served > 500*time.Millisecond {
			t.Errorf("the wait after a stream that served is %v", served)
		}
	})
}
