// Package client is an xDS client: it subscribes to resources at management servers, keeps
// the last good version of each, and tells its watches what changed, through reconnects
// and failures, for as long as it lives.
//
// It is the untyped façade. Most programs call package watcher, which gives the same
// things typed.
package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
)

// Errors of the client's methods.
var (
	// ErrClosed says that the client is closed.
	ErrClosed = errors.New("xds: the client is closed")
	// ErrStopped is the end of a watch that was stopped.
	ErrStopped = errors.New("xds: the watch was stopped")
	// ErrNilHandler says that a watch was given no handler.
	ErrNilHandler = errors.New("xds: the handler is nil")
	// ErrNilType says that a watch was given no resource type.
	ErrNilType = errors.New("xds: the resource type is nil")
	// ErrTypeConflict says that a type URL is watched with another resource type already.
	ErrTypeConflict = errors.New("xds: the type URL is watched with another resource type")
	// ErrCollection says that a name is one of a collection where one resource is meant,
	// or the other way round.
	ErrCollection = errors.New("xds: not the name of one resource")
)

// Client is an xDS client. Its methods are safe for concurrent use and may be called
// inside handlers.
type Client struct {
	config   Config
	boot     *bootstrap.Config
	node     string // id, for errors
	engine   *engine.Engine
	table    *authority.Table
	servers  []bootstrap.ManagementServer // by machine server
	serverOf map[source]int
	closed   atomic.Bool
	ended    chan struct{} // closed when all but handlers is over
	done     chan struct{} // closed when handlers are too

	mu      sync.Mutex
	types   map[string]*watchedType
	lanes   map[source]int
	watches map[*core]struct{}
	pending int           // watches without a first answer
	settled chan struct{} // closed while pending is 0

	gets gets
}

// source is who answers for a name: an authority, or for old-style names nobody by name.
type source struct {
	old       bool
	authority string
}

type watchedType struct {
	machine.Type
	kind resource.Kind
}

// New makes a client. It validates the whole configuration, with all faults joined into
// one error, and does no network I/O: a server is dialled with the first watch that needs
// it. The caller closes the client.
func New(config Config) (*Client, error) {
	if config.Bootstrap == nil {
		return nil, errors.New("xds: Config.Bootstrap is nil; see bootstrap.Load and bootstrap.Server")
	}
	boot := config.Bootstrap.WithDefaults()
	if err := boot.Validate(); err != nil {
		return nil, err
	}
	table, err := authority.New(boot)
	if err != nil {
		return nil, err
	}
	config = config.withDefaults()
	c := &Client{
		config: config, boot: boot, node: boot.Node.GetId(), table: table, serverOf: map[source]int{},
		ended: make(chan struct{}), done: make(chan struct{}), types: map[string]*watchedType{}, lanes: map[source]int{},
		watches: map[*core]struct{}{}, settled: make(chan struct{}),
	}
	close(c.settled)
	c.gets.most, c.gets.slots = GetMaxNames, map[getKey]*getSlot{}
	ec, err := c.engineConfig()
	if err != nil {
		return nil, err
	}
	for _, notice := range boot.Notices {
		config.Logger.Info(notice)
	}
	c.engine = engine.New(ec)
	return c, nil
}

// engineConfig makes one server of each that is the first of an authority, or of all
// names without one. Equal servers are one (gRFC A47).
func (c *Client) engineConfig() (engine.Config, error) {
	ec := engine.Config{
		ResourceTimeout: c.config.ResourceTimeout,
		Linger:          c.config.Linger,
		NodeAlways:      c.config.NodeOnEveryRequest,
		KeepDeleted:     c.config.DeletionPolicy == Keep,
		Node:            c.nodeMaker(),
		Logger:          c.config.Logger,
		Trace:           c.tracer(),
		Metrics:         c.counters(),
	}
	var faults []error
	byKey := map[string]int{}
	add := func(s bootstrap.ManagementServer) int {
		s = c.config.override(s)
		if i, ok := byKey[s.Key()]; ok {
			return i
		}
		i := len(c.servers)
		byKey[s.Key()] = i
		c.servers = append(c.servers, s)
		es := c.engineServer(s)
		if conn, err := es.Connect(); err != nil {
			faults = append(faults, err)
		} else {
			_ = conn.Close() // it was never dialled
		}
		ec.Servers = append(ec.Servers, es)
		return i
	}
	c.serverOf[source{old: true}] = add(c.boot.Servers[0])
	for _, name := range slices.Sorted(maps.Keys(c.boot.Authorities)) {
		servers := c.boot.Authorities[name].Servers
		if len(servers) == 0 {
			servers = c.boot.Servers
		}
		c.serverOf[source{authority: name}] = add(servers[0])
	}
	return ec, errors.Join(faults...)
}

// Watch subscribes to one resource. The handler is called by one goroutine at a time, in
// the order in which the server spoke, and may call anything of the client. While it
// runs, later events of its authority wait, and so does the next response of the server. Of
// trouble with the server that comes and goes meanwhile only the newest state is told.
//
// A structured name may be redirected by its server, and may have directives (xRFC TP1):
// "#entry=name" is an inline entry of the list collection before it, and "#alt=url" where
// to look while the server cannot be reached and nothing is held. They are followed, up to
// [MaxHops]; events have the name that was asked for, and Locator says where they are from.
// While the place of a value is taken by something that has not answered yet, it stays good.
//
// The end of ctx ends the watch; so do [Watch.Stop] and [Client.Close]. Nothing is told of
// these ends.
//
// Errors: [ErrClosed], [ErrNilHandler], [ErrNilType], [ErrTypeConflict], [ErrCollection],
// a [*ResourceError] of kind [ErrorConfig] for a malformed name or an unknown authority,
// and the context's own if it is over.
func (c *Client) Watch(ctx context.Context, kind resource.Kind, name string, h Handler, opts ...WatchOption) (*Watch, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	a, err := c.prepare(ctx, kind, name)
	if err != nil {
		return nil, err
	}
	s := &single{core: core{client: c, ctx: ctx}, handler: h}
	if a.watch.Owner = s; a.at != nil {
		s.inner = newInner(c)
		s.inner.follow = c.newFollow(kind, a, s.inner, s)
		a.watch.Owner = s.inner.follow.root
	}
	return s.start(a.watch, options(opts))
}

// WatchAll subscribes to a whole collection: "*" is every resource of the type, as far as
// the top-level server has any (xDS protocol, "Wildcard subscriptions"), and the URL of a
// list collection, whose type segment is that of the type with "Collection" behind it, is
// what that lists (xRFC TP1, "List collections"). The handler gets the members' events in
// batches: first what is held, later what changes. The first state is complete with the
// event of kind [KindSynced].
//
// The members of a list are called by their locators, and its inline entries by its URL
// with "#entry=name"; what has no name, by its URL with "#" and its index. A list is synced
// when of each member something is known: a value, that there is none, or a failure. A
// member that it lists no more is told to be removed; without a list all are, and the list
// does not exist. A listed name that cannot be used, or comes twice, is told to have failed,
// and hides nobody else.
//
// Otherwise it is as [Client.Watch].
func (c *Client) WatchAll(ctx context.Context, kind resource.Kind, collection string, h BatchHandler, opts ...WatchOption) (*Watch, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	if err := c.check(ctx, kind); err != nil {
		return nil, err
	}
	switch l, isList, err := listOf(kind, collection); {
	case err != nil:
		return nil, c.configError(kind, collection, err)
	case isList:
		return c.watchList(ctx, kind, l, h, options(opts))
	}
	w, err := c.prepareAll(kind, collection)
	if err != nil {
		return nil, err
	}
	s := &everything{core: core{client: c, ctx: ctx}, handler: h, batch: batcher{client: c}, name: wildcard}
	o := options(opts)
	w.Owner, w.Explicit = s, o.explicit
	return s.start(w, o)
}

// wildcard is the name of everything.
const wildcard = "*"

// prepareAll checks what the watch of a collection is to be and finds its server.
func (c *Client) prepareAll(kind resource.Kind, collection string) (*machine.Watch, error) {
	if collection != wildcard && collection != "" {
		return nil, c.configError(kind, collection, fmt.Errorf("%w: neither %q nor a list collection of the type", ErrCollection, wildcard))
	}
	return c.place(kind, wildcard, source{old: true}, machine.Watch{Wildcard: true})
}

// place gives a watch its type, its server and the lane of its authority.
func (c *Client) place(kind resource.Kind, name string, from source, w machine.Watch) (*machine.Watch, error) {
	t, err := c.typeOf(kind, name)
	if err != nil {
		return nil, err
	}
	w.Type, w.Server, w.Lane = t, int32(c.serverOf[from]), int32(c.laneOf(from))
	if server := c.servers[w.Server]; server.PerType && methodOf(kind, server.Delta) == "" {
		return nil, c.configError(kind, name, fmt.Errorf("the type has no stream of its own, as server %q asks for", server.URI))
	}
	return &w, nil
}

func methodOf(kind resource.Kind, delta bool) string {
	sotw, incremental := kind.Methods()
	if delta {
		return incremental
	}
	return sotw
}

// check says what is wrong with a watch whatever it is of.
func (c *Client) check(ctx context.Context, kind resource.Kind) error {
	switch {
	case c.closed.Load():
		return ErrClosed
	case kind == nil:
		return ErrNilType
	}
	return ctx.Err()
}

// typeOf finds or makes the machine's type of a kind. A type URL has one kind.
func (c *Client) typeOf(kind resource.Kind, name string) (*machine.Type, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.types[kind.TypeURL()]
	if t == nil {
		t = &watchedType{kind: kind, Type: machine.Type{
			URL: kind.TypeURL(), FullState: kind.FullState(), NameField: kind.NameField(),
		}}
		c.types[kind.TypeURL()] = t
	}
	if t.kind != kind {
		return nil, c.configError(kind, name, ErrTypeConflict)
	}
	return &t.Type, nil
}

// kindOf is the kind of a type URL that is watched.
func (c *Client) kindOf(typeURL string) resource.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types[typeURL].kind
}

// laneOf numbers authorities: the events of one are told in order.
func (c *Client) laneOf(from source) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.lanes[from]; !ok {
		c.lanes[from] = len(c.lanes)
	}
	return c.lanes[from]
}

// ResetBackoff ends all waits between attempts to reach a server now, for a program that
// knows that the network is back.
func (c *Client) ResetBackoff() { c.engine.ResetBackoff() }

// Ready blocks until every watch has had its first answer: a value, an absence or an
// error of the resource. Trouble with a server is no answer. It returns nil then,
// [ErrClosed], the error of ctx, or [ErrInHandler] inside a handler, for which other
// events wait.
func (c *Client) Ready(ctx context.Context) error {
	for {
		c.mu.Lock()
		settled, pending := c.settled, c.pending
		c.mu.Unlock()
		switch {
		case c.closed.Load():
			return ErrClosed
		case pending == 0:
			return nil
		case c.engine.InHandler():
			return ErrInHandler
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends all watches, streams and connections. It waits for everything that the client
// runs, but not for a handler; [Client.Done] tells the end of that too. It may be called
// inside a handler. Closing twice is nothing.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		<-c.ended
		return nil
	}
	c.engine.Close()
	c.endAll()
	close(c.ended)
	go func() {
		c.engine.Wait()
		close(c.done)
	}()
	return nil
}

// Done is closed when, after Close, the last handler has returned.
func (c *Client) Done() <-chan struct{} { return c.done }

func (c *Client) endAll() {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.watches))
	c.mu.Unlock()
	for _, w := range all {
		w.end(ErrClosed)
	}
	c.gets.close()
}
