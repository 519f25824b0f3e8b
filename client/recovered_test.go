package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// mood is what a program that shows its state would show of each name.
type mood struct {
	mu  sync.Mutex
	bad map[string]error
	log []string
}

func (m *mood) hear(ev client.Event[any]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, lines([]client.Event[any]{ev})...)
	switch ev.Kind {
	case client.EventAmbientError, client.EventFailed:
		m.bad[ev.Name] = ev.Err
	case client.EventUpdated, client.EventDoesNotExist, client.EventRecovered, client.EventSynced:
		delete(m.bad, ev.Name)
	}
}

// constant answers each request for clusters with what is asked for, always the same.
func constant(st *testutil.Stream, r *testutil.Request) {
	names := r.Names()
	if len(names) == 0 {
		names = []string{"a", "b", "c"}
	}
	var ms []proto.Message
	for _, name := range names {
		if name != "*" {
			ms = append(ms, cluster(name, "1"))
		}
	}
	before := st.Requests()
	if n := len(before); n > 1 && slices.Equal(before[n-2].Names(), r.Names()) {
		return // an ACK
	}
	_ = st.Send(testutil.SotW(cds.Type.TypeURL(), "1", fmt.Sprint("n", len(before)), ms...))
}

// Whatever servers come and go, whoever was told of trouble hears that it is over, though no
// value has changed meanwhile.
//
// spec: U-7 ERR-10 FALLBACK-5
func TestTroubleIsAlwaysOver(t *testing.T) {
	if testing.Short() {
		t.Skip("long: servers that come and go, many times")
	}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			first := testutil.NewServer(testutil.Named("first"), testutil.OnRequest(constant))
			second := testutil.NewServer(testutil.Named("second"), testutil.OnRequest(constant))
			t.Cleanup(second.Close)
			r := newRig(t, first, func(c *client.Config) {
				c.Bootstrap.Servers = append(c.Bootstrap.Servers, bootstrap.ManagementServer{
					URI: second.Target(), ChannelCreds: bootstrap.Insecure(),
				})
				c.GRPC = transport.GRPCConfig{DialOptions: append(c.GRPC.DialOptions, testutil.InMemory(first, second))}
			})
			rng := rand.New(rand.NewPCG(seed, 7))
			m := &mood{bad: map[string]error{}}
			watches := map[string]*client.Watch{}
			flip := func(name string) {
				if w := watches[name]; w != nil {
					w.Stop()
					delete(watches, name)
					synctest.Wait()
					m.mu.Lock()
					delete(m.bad, name)
					m.mu.Unlock()
					return
				}
				w, err := r.c.Watch(context.Background(), cds.Type, name, m.hear)
				must(t, err)
				watches[name] = w
			}
			if seed%2 == 0 {
				_, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
					for _, ev := range b.Events {
						if ev.Name == "*" {
							m.hear(ev)
						}
					}
				})
				must(t, err)
			}
			flip("a")
			for range 40 {
				srv := []*testutil.Server{first, second}[rng.IntN(2)]
				switch rng.IntN(4) {
				case 0:
					srv.SetRefuse(true)
					srv.DropConnections()
				case 1:
					srv.SetRefuse(false)
				case 2:
					flip([]string{"a", "b", "c"}[rng.IntN(3)])
				case 3:
				}
				time.Sleep(time.Duration(rng.IntN(20_000)) * time.Millisecond)
			}
			first.SetRefuse(false)
			second.SetRefuse(seed%3 == 0)
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			m.mu.Lock()
			defer m.mu.Unlock()
			if len(m.bad) > 0 {
				t.Errorf("seed %d: all is well, and who was told of trouble did not hear it: %v\n%v", seed, m.bad, m.log)
			}
		})
	}
}
