package lives

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/transport"
)

// quiet is after how long nothing more is to come: the longest wait for a stream, twice, and
// resource timers.
const quiet = 3 * time.Minute

// outcome is what became of a life.
type outcome struct {
	faults   []fault
	listed   map[string]int // what is no fault but a server's way, and how often
	timeline []string
}

// world is a client, its watches and its server, in a bubble.
type world struct {
	life    life
	truth   *truth
	place   *place
	client  *client.Client
	watches map[int]*watch
	began   time.Time

	mu      sync.Mutex // of the watches, too
	out     outcome
	streams []uint64          // by their numbers in the timeline
	starred map[typ]time.Time // when a wildcard went that may have been on the wire as "*"
	left    map[key]time.Time // when the last watch of a name ended
}

// key is a name that is or was watched.
type key struct {
	typ  typ
	name string
}

// lead leads a life.
func lead(t *testing.T, l life) (out outcome) {
	synctest.Test(t, func(*testing.T) {
		w := &world{life: l, truth: newTruth(), watches: map[int]*watch{}, starred: map[typ]time.Time{}, left: map[key]time.Time{}, began: time.Now()}
		w.out.listed = map[string]int{}
		w.place = &place{build: l.setup.build, truth: w.truth}
		if err := w.connect(); err != nil {
			w.out.faults = append(w.out.faults, fault{"no client", err.Error()})
		} else {
			for _, s := range l.steps {
				w.take(s)
			}
			w.client.Close()
			<-w.client.Done()
		}
		w.place.kill()
		out = w.out
	})
	return out
}

func (w *world) connect() (err error) {
	w.client, err = client.New(client.Config{
		Bootstrap: &bootstrap.Config{
			Node:    &corev3.Node{Id: ciliumNode, Cluster: "test"},
			Servers: []bootstrap.ManagementServer{{URI: "passthrough:///server", ChannelCreds: bootstrap.Insecure()}},
		},
		Variant: w.life.setup.variant, Streams: w.life.setup.streams,
		Linger: w.life.temper.linger, ResourceTimeout: w.life.temper.timeout,
		GRPC:  transport.GRPCConfig{DialOptions: []grpc.DialOption{grpc.WithContextDialer(w.place.dial)}},
		Trace: w.trace(),
	})
	return err
}

// trace writes down what goes over the wire.
func (w *world) trace() *client.Trace {
	note := func(i client.StreamInfo, format string, args ...any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !slices.Contains(w.streams, i.ID) {
			w.streams = append(w.streams, i.ID)
		}
		w.note("stream %d: %s", slices.Index(w.streams, i.ID), fmt.Sprintf(format, args...))
	}
	return &client.Trace{
		StreamUp:   func(s client.StreamInfo) { note(s, "opens %s", short(s.Type)) },
		StreamDown: func(s client.StreamInfo, err error) { note(s, "ends: %v", err) },
		Request:    func(r client.RequestInfo) { note(r.Stream, "request of %s, %d bytes", short(r.Type), r.Size) },
		Response: func(r client.ResponseInfo) {
			note(r.Stream, "response of %s, version %q, %d resources", short(r.Type), r.Version, r.Resources)
		},
		NACK: func(a client.AnswerInfo) { note(a.Stream, "NACK of %s: %v", short(a.Type), a.Err) },
	}
}

func short(url string) string { return url[strings.LastIndexByte(url, '.')+1:] }

// take takes a step.
func (w *world) take(s step) {
	w.mu.Lock()
	w.note("== %v", s)
	w.mu.Unlock()
	up := w.place.current() != nil
	switch {
	case s.verb == verbWatch:
		w.watch(s)
	case s.verb == verbUnwatch:
		w.unwatch(s)
	case s.verb == verbSet:
		w.set(s)
	case s.verb == verbKill:
		w.place.kill()
	case s.verb == verbBegin && !up:
		w.place.begin()
	case s.verb == verbCheck:
		w.check()
	}
	time.Sleep(s.wait)
}

func (w *world) watch(s step) {
	one := &watch{world: w, id: s.id, typ: s.typ, name: s.name, explicit: s.explicit}
	w.mu.Lock()
	w.watches[s.id] = one
	w.mu.Unlock()
	if err := one.begin(w.client); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fault("no watch", "%v: %v", one, err)
		delete(w.watches, s.id)
	}
}

func (w *world) unwatch(s step) {
	w.mu.Lock()
	one := w.watches[s.id]
	delete(w.watches, s.id)
	if w.explicit(s.typ) {
		w.starred[s.typ] = time.Now()
	}
	if one != nil {
		w.left[key{one.typ, one.name}] = time.Now()
	}
	w.mu.Unlock()
	if one != nil {
		one.stop()
	}
}

// explicit says whether a wildcard of a type may be on the wire as "*".
func (w *world) explicit(k typ) bool {
	for _, one := range w.watches {
		if one.typ == k && one.explicit {
			return true
		}
	}
	left, ok := w.starred[k]
	return ok && time.Since(left) < longest
}

func (w *world) set(s step) {
	w.truth.change(s.typ, s.changes)
	if server := w.place.current(); server != nil {
		w.truth.publish(true)
		server.change(s.typ, s.changes)
	}
}

// check waits until all is quiet, with a server, and compares.
func (w *world) check() {
	if w.place.current() == nil {
		w.place.begin()
	}
	time.Sleep(quiet)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.sorted() {
		one.check()
	}
}

func (w *world) sorted() []*watch {
	var all []*watch
	for _, one := range w.watches {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *watch) int { return cmp.Compare(a.id, b.id) })
	return all
}

// stays says whether the server never says that a resource of the type has gone.
func (w *world) stays(k typ) bool {
	return w.life.setup.variant == client.VariantSotW && k == endpoints
}

// muted says whether the server is silent about the names of a type, without a fault of the
// client's: a wildcard is asked for without names.
func (w *world) muted(k typ, name string) bool {
	for _, one := range w.watches {
		if one.typ == k && one.name == "*" {
			return false
		}
	}
	server := w.place.current()
	return w.life.setup.variant == client.VariantSotW && server != nil && server.mute(k, name)
}

// named says whether a resource is watched by name, or was a moment ago.
func (w *world) named(k typ, name string) bool {
	for _, one := range w.watches {
		if one.typ == k && one.name == name {
			return true
		}
	}
	left, ok := w.left[key{k, name}]
	return ok && time.Since(left) < moment
}

// note writes a line of the timeline.
func (w *world) note(format string, args ...any) {
	w.out.timeline = append(w.out.timeline, fmt.Sprintf("%10.3fs  %s", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...)))
}

func (w *world) fault(class, format string, args ...any) {
	f := fault{class, fmt.Sprintf(format, args...)}
	w.out.faults = append(w.out.faults, f)
	w.note("FAULT %v", f)
}

func (w *world) list(what string) { w.out.listed[what]++ }
