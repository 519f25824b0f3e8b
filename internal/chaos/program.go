package chaos

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// program is what uses a client: watches, sets, collections and lookups that come and go.
// It is driven by one goroutine.
type program struct {
	*world
	config  client.Config
	number  int          // of subscriptions so far
	came    atomic.Int64 // streams that came up
	refused atomic.Int64 // resources that were not valid
	lookups sync.WaitGroup

	// Of the client that lives.
	client   *client.Client // nil while there is none
	subs     []*sub         // those that live
	standing map[string]int // streams that are up, by server
}

// linger is how long the client keeps a stream on which nothing is watched.
const linger = 50 * time.Millisecond

// most is how many subscriptions live when another begins by chance; 16 of them are probes.
const most = 46

// newProgram makes a program whose clients use some servers. It counts what they come to, waits
// less than others, and writes a journal.
func newProgram(w *world) *program {
	p := &program{world: w}
	logger := slog.New(slog.NewTextHandler(w.log.Writer(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	b := &bootstrap.Config{Node: &corev3.Node{Id: "chaos"}}
	p.config = client.Config{
		Bootstrap: b, Logger: logger, Trace: client.LogTrace(logger),
		ResourceTimeout: resourceTimeout, Linger: linger, GetIdle: linger,
		Metrics: &client.Metrics{ResourceUpdatesInvalid: func(n client.UpdateCount) { p.refused.Add(int64(n.Resources)) }},
		Backoff: func() backoff.BackOff {
			return backoff.NewExponentialBackOff(
				backoff.WithInitialInterval(5*time.Millisecond),
				backoff.WithMaxInterval(100*time.Millisecond),
				backoff.WithMaxElapsedTime(0),
			)
		},
		GRPC: transport.GRPCConfig{
			KeepaliveTime: keepaliveTime, KeepaliveTimeout: keepaliveTimeout, ConnectTimeout: connectTimeout,
		},
	}
	p.config.Trace.StreamUp = func(s client.StreamInfo) {
		p.came.Add(1)
		p.stood(s, +1, nil)
	}
	p.config.Trace.StreamDown = func(s client.StreamInfo, err error) { p.stood(s, -1, err) }
	var inMemory []*testutil.Server
	for _, s := range w.sites {
		b.Servers = append(b.Servers, s.reach())
		if s.memory != nil {
			inMemory = append(inMemory, s.memory.server)
		}
	}
	b.Authorities = map[string]bootstrap.Authority{authority: {Servers: b.Servers[w.first(ofAuthority):]}}
	if w.via == viaMemory {
		p.config.GRPC.KeepaliveTime = -1
		p.config.GRPC.DialOptions = []grpc.DialOption{testutil.InMemory(inMemory...)}
	}
	return p
}

// open begins a client.
func (p *program) open() {
	p.subs = nil
	p.standing = map[string]int{}
	var err error
	p.client, err = client.New(p.config)
	must(p.t, err)
}

// close ends the client and waits for all that it runs. A second call does nothing.
func (p *program) close() {
	if p.client == nil {
		return
	}
	err := p.client.Close()
	<-p.client.Done()
	p.lookups.Wait()
	p.listen()
	p.client = nil
	if kept, ok := p.config.Store.(*store.Directory); ok {
		err = errors.Join(err, kept.Close())
	}
	must(p.t, err)
}

// stood counts a stream that came or went.
func (p *program) stood(s client.StreamInfo, by int, err error) {
	p.log.Printf("stream %d at %s: %+d %v", s.ID, s.Server, by, err)
	p.later(func() { p.standing[s.Server] += by })
}

// streamsAt is how many streams of the program to a server stand.
func (p *program) streamsAt(uri string) int {
	p.listen()
	return p.standing[uri]
}

// step changes one thing.
func (p *program) step() {
	k, full := p.rng.IntN(len(kinds)), len(p.subs) >= most
	switch n := p.rng.IntN(20); {
	case n < 8 && !full:
		p.subscribe(watch, k, p.name(k))
	case n < 10 && !full:
		p.subscribe(set, k, p.name(k), p.name(k))
	case n < 11 && !full:
		all := "*"
		if p.rng.IntN(2) == 0 || !kinds[k].typ.FullState() {
			all = kinds[k].glob()
		}
		p.subscribe(collection, k, all)
	case n < 14:
		p.changeSet()
	case n == 14:
		p.lookup(k, p.name(k))
	case n == 15:
		p.client.ResetBackoff()
	default:
		p.endOne()
	}
}

func (p *program) name(k int) string {
	if n := p.rng.IntN(names); p.rng.IntN(2) == 0 {
		return kinds[k].member(n)
	} else {
		return kinds[k].name(n)
	}
}

// subscribe begins a subscription.
func (p *program) subscribe(f form, k int, names ...string) *sub {
	p.number++
	s := newSub(p.world, p.number, f, k, names)
	p.subs = append(p.subs, s)
	p.log.Printf("%v: %q", s, names)
	typ := kinds[k].typ
	hear := func(b client.Batch[any]) { s.hear(b.Events...) }
	var err error
	switch f {
	case watch:
		s.on, err = p.client.Watch(context.Background(), typ, names[0], func(ev client.Event[any]) { s.hear(ev) })
	case collection:
		s.on, err = p.client.WatchAll(context.Background(), typ, names[0], hear)
	case set:
		of, err := p.client.NewSet(context.Background(), typ, hear)
		must(p.t, err)
		s.on = of
		must(p.t, of.Add(names...))
	}
	must(p.t, err)
	return s
}

// changeSet adds a name to a set, or takes one out.
func (p *program) changeSet() {
	sets := slices.DeleteFunc(slices.Clone(p.subs), func(s *sub) bool { return s.form != set })
	if len(sets) == 0 {
		return
	}
	s := sets[p.rng.IntN(len(sets))]
	name := p.name(s.kind)
	p.listen()
	member := s.told[name] != nil
	if member {
		delete(s.told, name)
	} else {
		s.told[name] = &holding{}
	}
	p.log.Printf("%v: %q out: %v", s, name, member)
	if of := s.on.(*client.Set); member {
		of.Remove(name)
	} else {
		must(p.t, of.Add(name))
	}
}

// lookupPatience is how long a lookup may wait; that nothing was found in time is no fault
// while the server is out of reach.
const lookupPatience = 3 * time.Second

// lookup looks a resource up in a goroutine of its own.
func (p *program) lookup(k int, name string) {
	p.lookups.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
		defer cancel()
		ev, err := p.client.Get(ctx, kinds[k].typ, name)
		p.later(func() {
			switch {
			case err == nil && p.lies(ev.Server, name, holding{kind: client.EventUpdated, rev: kinds[k].revision(ev.Value)}):
				p.fault("a lookup of %q gave a value that the server %s never said", name, ev.Server)
			case errors.Is(err, client.ErrDoesNotExist) && !slices.ContainsFunc(p.sites, func(s *site) bool {
				return strings.Contains(err.Error(), strconv.Quote(s.uri)) && !p.lies(s.uri, name, holding{kind: client.EventDoesNotExist})
			}):
				p.fault("a lookup was told that %q does not exist, and it does: %v", name, err)
			}
		})
	})
}

// endOne ends any one subscription.
func (p *program) endOne() {
	if len(p.subs) > 0 {
		p.end(p.subs[p.rng.IntN(len(p.subs))])
	}
}

// endAmid ends one as soon as handlers are called: events then wait for it.
func (p *program) endAmid() {
	for n := 0; p.listen() == 0 && n < 100; n++ {
		time.Sleep(slowness / 10)
	}
	p.endOne()
}

// stopAll ends all subscriptions. The client then lets its streams and connections go,
// unless there is a lookup.
func (p *program) stopAll() {
	for len(p.subs) > 0 {
		p.end(p.subs[0])
	}
}

func (p *program) end(s *sub) {
	p.log.Printf("%v stops", s)
	s.on.Stop()
	p.listen()
	calls := p.calls
	s.stopped = &calls
	p.subs = slices.DeleteFunc(p.subs, func(other *sub) bool { return other == s })
}

// probe watches something of each type that no server has and nobody watched before: so
// something is lacking, wherever the client is. It also watches what each has, so that each has something to say.
// What was watched so before is done with.
func (p *program) probe() {
	before := slices.Clone(p.subs)
	for k, kind := range kinds {
		for _, n := range []int{0, names + p.number} {
			p.subscribe(watch, k, kind.name(n)).probe = true
			p.subscribe(watch, k, kind.member(n)).probe = true
		}
	}
	for _, s := range before {
		if s.probe {
			p.end(s)
		}
	}
}
