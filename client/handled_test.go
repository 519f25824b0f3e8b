package client_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// Handled follows when the last handler has returned, of whatever authority, and before the next
// response.
func TestTraceHandled(t *testing.T) {
	var got []string
	begin := time.Time{}
	since := func(at time.Time) time.Duration { return at.Sub(begin) }
	inBubble(t, func(t *testing.T, r *rig) {
		for range 2 {
			_, err := r.c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) { time.Sleep(time.Second) })
			must(t, err)
		}
		st := r.accept()
		begin = time.Now()
		bad := testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a", "1"))
		bad.Resources[0].Value = []byte("no message")
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a", "1"), cluster("b", "1"))))
		must(t, st.Send(bad))
		time.Sleep(time.Minute)
		synctest.Wait()
	}, func(c *client.Config) {
		c.Trace = &client.Trace{
			Response: func(i client.ResponseInfo) {
				got = append(got, fmt.Sprintf("response %s at %v", i.Nonce, since(i.Received)))
			},
			Handled: func(i client.HandledInfo) {
				got = append(got, fmt.Sprintf("handled at %v, %d valid, %d invalid", since(i.At), i.Valid, i.Invalid))
			},
		}
	})
	want := []string{
		"response n1 at 0s", "handled at 2s, 1 valid, 0 invalid",
		"response n2 at 0s", "handled at 2s, 0 valid, 1 invalid", // nobody hears of an entry without a name
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A response, its handler and its ACK, with and without a trace: without one nothing is done for it.
func BenchmarkTrace(b *testing.B) {
	for name, trace := range map[string]*client.Trace{"off": nil, "on": {
		Response: func(client.ResponseInfo) {}, Handled: func(client.HandledInfo) {}, ACK: func(client.AnswerInfo) {},
	}} {
		b.Run(name, func(b *testing.B) {
			srv := testutil.NewServer(testutil.Unrecorded(), testutil.OnStream(func(st *testutil.Stream) { streams <- st }))
			defer srv.Close()
			boot, err := bootstrap.Server(srv.Target())
			if err != nil {
				b.Fatal(err)
			}
			c, err := client.New(client.Config{Bootstrap: boot, Trace: trace, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			called := make(chan struct{}, 1)
			if _, err := c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { called <- struct{}{} }); err != nil {
				b.Fatal(err)
			}
			st := <-streams
			i := 0
			for b.Loop() {
				i++
				if err := st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n", cluster("a", fmt.Sprint(i)))); err != nil {
					b.Fatal(err)
				}
				<-called
			}
		})
	}
}

var streams = make(chan *testutil.Stream, 1)
