package client_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/transport"
)

// textless is an error whose text cannot be had: that of a nil pointer panics.
type textless struct{ text string }

func (e *textless) Error() string { return e.text }

// textlessConn fails to open streams, or opens streams that fail.
type textlessConn struct {
	failing
	opens bool
}

type textlessStream struct{}

func (textlessStream) Send(...[]byte) error           { return nil }
func (textlessStream) Recv() (transport.Frame, error) { return transport.Frame{}, (*textless)(nil) }
func (textlessStream) Close()                         {}

func (c *textlessConn) Build(bootstrap.ManagementServer) (transport.Conn, error) { return c, nil }

func (c *textlessConn) Open(context.Context, string) (transport.Stream, error) {
	if c.opens {
		return textlessStream{}, nil
	}
	return nil, (*textless)(nil)
}

// An error of the program's whose Error panics is told like others. It is told twice, since the
// second is compared with the first.
func TestErrorsWithoutText(t *testing.T) {
	none := (*textless)(nil)
	kind := resource.AnyType(cds.Type)
	refused := func(t *testing.T, r *rig) {
		_, rec := r.watchType(kind, "a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		r.clusters(st, "1", "n2", "a")
		rec.heard(t, "failed a rejected: <nil>")
	}
	t.Run("guard", func(t *testing.T) {
		inBubble(t, refused, func(c *client.Config) {
			c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {func(*client.Proposal) error { return none }}}
		})
	})
	for kind, opens := range map[string]bool{"connection": false, "stream": true} {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				_, rec := r.watch("a")
				time.Sleep(time.Minute)
				rec.heard(t, "failed a "+kind)
			}, func(c *client.Config) { c.Transport = &textlessConn{opens: opens} })
		})
	}
	kind = resource.Custom(cds.Type.TypeURL(), resource.Options{NameField: 1}, func(resource.Source, []byte) (any, error) { return nil, none })
	t.Run("decoder", func(t *testing.T) { inBubble(t, refused) })
}

// A handler that panics with such an error ends its watch, and nothing else.
// spec: U-8
func TestPanicWithoutText(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		w, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { panic((*textless)(nil)) })
		must(t, err)
		_, beside := r.watch("a")
		r.clusters(r.accept(), "1", "n1", "a")
		<-w.Done()
		beside.heard(t, "updated a 1")
		same(t, "the end of the watch", fmt.Sprint(w.Err()), "xds: the handler panicked: <nil>")
	})
}
