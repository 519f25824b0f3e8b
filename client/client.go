// Package client is an xDS client: it subscribes to resources at management servers, keeps the
// last good version of each, and calls handlers for each change, through reconnects and
// failures, until it is closed.
//
// It is the untyped façade. Most programs call package watcher, which has the same functions
// with types.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/ctxerr"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/keeper"
	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/ondemand"
	"github.com/xdswatch/xdswatch/internal/sources"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/xdstp"
	"github.com/xdswatch/xdswatch/xdstp/nodeparams"
)

// Errors of the client's methods.
var (
	// ErrClosed says that the client is closed.
	ErrClosed = errors.New("xds: the client is closed")
	// ErrStopped is the error of a watch that was stopped.
	ErrStopped = errors.New("xds: the watch was stopped")
	// ErrNilHandler says that a watch was given no handler.
	ErrNilHandler = errors.New("xds: the handler is nil")
	// ErrNilContext says that a method was given no context.
	ErrNilContext = errors.New("xds: the context is nil")
	// ErrNilType says that a watch was given no resource type.
	ErrNilType = errors.New("xds: the resource type is nil")
	// ErrTypeConflict says that the program has used the type URL with another resource type
	// before, be it in a watch that failed.
	ErrTypeConflict = errors.New("xds: the type URL is used with another resource type")
	// ErrCollection says that a name is that of a collection where the method takes one
	// resource, or the reverse.
	ErrCollection = errors.New("xds: one resource is watched with Watch, a collection with WatchAll")
)

// Client is an xDS client. Its methods are safe for concurrent use and may be called
// inside handlers.
type Client struct {
	config   Config
	boot     *bootstrap.Config
	madeID   atomic.Pointer[string] // of the newest node that makeNode made
	ownBytes []byte                 // the node, encoded, but for Config.Node and SetNodeParameters
	engine   *engine.Engine
	sources  *sources.Sources
	layouts  listing.Layouts
	view     *view // of watches that bring nothing along
	// nodeParams are added to collections of Listeners and Clusters.
	nodeParams []xdstp.Param
	closed     atomic.Bool
	ended      chan struct{} // closed when all but handlers is over
	done       chan struct{} // closed when handlers are too

	kinds   kinds
	books   books
	answers answers
	endings sync.Mutex                      // guards those of all watches and sets
	gets    *ondemand.Pool[getKey, *lookup] // what Get keeps
	foreign foreign
	files   badFiles
	keeper  *keeper.Keeper // nil without a store
}

// New makes a client. It validates the whole configuration and joins all faults into one error.
// It does no network I/O: the client dials a server when the first watch needs it. The caller
// closes the client.
func New(config Config) (*Client, error) {
	if config.Bootstrap == nil {
		return nil, errors.New("xds: Config.Bootstrap is nil; see bootstrap.Load and bootstrap.Server")
	}
	if err := errors.Join(config.Bootstrap.Validate(), config.faults()); err != nil {
		return nil, err // before servers are inherited, whose number is bounded
	}
	boot := config.Bootstrap.WithDefaults()
	table, err := authority.New(boot)
	if err != nil {
		return nil, err
	}
	node := completed(boot.Node)
	params, err := nodeparams.Render(node, boot.NodeContextParams)
	if err != nil {
		return nil, err
	}
	c := &Client{
		config: config.withDefaults(), boot: boot, nodeParams: params,
		ended: make(chan struct{}), done: make(chan struct{}),
		kinds: kinds{types: map[string]*machine.Type{}}, files: badFiles{all: map[[2]string]transport.FileReport{}},
	}
	c.view = &view{client: c, table: table}
	c.kinds.config = &c.config
	c.gets = ondemand.New[getKey](ondemand.Config[*lookup]{
		Idle: c.config.GetIdle, Most: c.config.GetMaxNames,
		Release: func(l *lookup) { l.watch.end(ErrStopped) }, Stays: c.irreplaceable,
	})
	c.foreign = foreign{
		most: c.config.MaxForeignNames, names: map[authorities]map[string]int{}, watches: map[*machine.Watch]authorities{},
	}
	if c.config.Transport == nil {
		c.config.Transport = c.newTransport()
	}
	if c.ownBytes, err = encodeNode(node); err != nil {
		return nil, fmt.Errorf("the node cannot be encoded: %w", err)
	}
	ec := engine.Config{
		Machine: machine.Config{
			ResourceTimeout: cmp.Or(c.config.ResourceTimeout, defaultResourceTimeout),
			Linger:          c.config.Linger,
			MaxResource:     c.config.MaxResourceSize,
			MaxHeld:         c.config.MaxHeldSize,
		},
		HandlerTimeout: c.config.HandlerTimeout,
		Node:           c.makeNode,
		Logger:         config.Logger, // nil if the program has none
		Guard:          c.judge,
	}
	c.sources, ec.Servers, ec.Sources, err = sources.New(sources.Config{
		Override: c.config.override, Make: c.engineServer, Extend: c.extend, Params: c.paramsOf, Stored: c.config.Store != nil,
	}, table)
	if err != nil {
		return nil, err
	}
	if c.config.Trace != nil {
		ec.Trace = c.trace
	}
	if c.config.Metrics != nil {
		ec.Metrics = c.count
	}
	for _, notice := range boot.Notices {
		c.config.Logger.Info(engine.Cut(notice, engine.MaxLogged))
	}
	if c.config.Store != nil {
		c.keeper = keeper.New(storeHost{c}, c.config.Logger, c.config.StoreTypes)
		ec.Store = c.keeper
	}
	c.engine = engine.New(ec)
	return c, nil
}

// Watch subscribes to one resource. One goroutine at a time calls the handler, in the order in
// which the server sent the changes. The handler may call any method of the client. While it
// runs, later events of its authority wait, and so does the server's next response; if trouble
// with the server comes and goes meanwhile, the handler gets only the newest state of it.
//
// The server may redirect a structured name, and the name may have directives (xRFC TP1):
// "#entry=name" selects an inline entry of the list collection before it, and "#alt=url" says
// where to look while the server cannot be reached and no value is held. The client follows
// them, up to eight; events have the name that the program asked for, and Event.Locator says
// where they are from. A file may hold the list: "file:///path#entry=name" (see
// [Client.WatchAll]). When a new place replaces that of a value, the value stays good until the
// new place has answered.
//
// The watch ends with ctx, [Watch.Stop] or [Client.Close]. The handler gets no event for these
// ends.
//
// The method does no network I/O. It waits for room among what the client's loop has to do, and the
// first watch at a new source for Config.Transport to build its connections, which are not dialled.
//
// Errors: [ErrClosed], [ErrNilHandler], [ErrNilContext], [ErrNilType], [ErrTypeConflict],
// [ErrCollection]; a [*ResourceError] of kind [ErrorConfig] for a malformed name, an unknown
// authority, a server that cannot be configured, or a type that a server's streams cannot carry,
// such as a type without streams of its own at a server with one stream for each type; ctx's
// error if ctx has ended; and an untyped error for a type that is not comparable and for a
// source of [FromSource] without servers.
func (c *Client) Watch(ctx context.Context, kind resource.AnyType, name string, h Handler[any], opts ...WatchOption) (*Watch, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	return c.watchOne(ctx, kind, name, h, opts)
}

// WatchTyped is [Client.Watch], errors included, for a handler of values of one type; programs call it
// as watcher.Watch. The client makes an event once for all watches of its resource.
func WatchTyped[T any](ctx context.Context, c *Client, t *resource.Type[T], name string, h Handler[T], opts ...WatchOption) (*Watch, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	return c.watchOne(ctx, t, name, h, opts)
}

func (c *Client) watchOne(ctx context.Context, kind resource.AnyType, name string, h caller, opts []WatchOption) (*Watch, error) {
	v, err := c.check(ctx, kind, opts)
	if err != nil {
		return nil, err
	}
	served, form := c.kinds.serving(kind)
	s := &single{}
	s.init(ctx, v, isOne)
	a, err := v.prepare(served, name, false, &s.watch)
	if err != nil {
		return nil, err
	}
	s.handler = c.granting(h, kind, form, a.Name, name)
	return s.start(s, a)
}

// WatchAll subscribes to a whole collection. "*", or "" for short, is every resource of the type
// that the top-level servers have (xDS protocol, "Wildcard subscriptions"). A glob,
// "xdstp://authority/type/path/*", is the resources whose names have one more segment in place
// of the "*" and the same context parameters. The URL of a list collection, whose type segment
// is that of the type followed by "Collection", is the resources that it lists (xRFC TP1); so is
// an old-style name with [ListByName].
//
// The handler gets the members' events in batches: first the values that are held, later the
// changes. An event of kind [EventSynced] says that the first state is complete, also that of an
// empty collection; errors of its server up to then come after it. If a server sends nothing
// about a wildcard or a glob for Config.ResourceTimeout (15 seconds where that is negative), it has
// nothing to add to the resources that the client subscribed to by name: if it has sent any of
// these, the first state is complete; if not, the collection does not exist (where that is
// negative, the watch waits on). An event about the collection as a whole has
// the collection's name in Event.Name.
//
// The URL of a file, "file:///path", is the list collection that the file holds (xRFC TP1;
// package [github.com/xdswatch/xdswatch/transport/file] says how). The file is a source of its
// own, which the client keeps until it is closed, as it does those of [FromSource]. The client
// asks for the resources of the file's locators at the sources of their names. It follows no
// server's locator to a file.
//
// Events name the members of a list by their locators, and its inline entries by the list's URL
// with "#entry=name"; an entry without a name by that URL with "#" and its index. A list is
// synced when the client knows of each member a value, an absence or a failure. A member that
// the list no longer has gets an event of [ReasonRemoved]; without the list all members do, and
// the list does not exist, or has failed, until it is synced again. An entry that cannot be
// used, or comes twice, gets an [EventFailed] and affects no other; the client NACKs the list
// for it, unless the only fault is that the bootstrap has no servers.
//
// For the rest see [Client.Watch].
func (c *Client) WatchAll(ctx context.Context, kind resource.AnyType, collection string, h BatchHandler[any], opts ...WatchOption) (*Watch, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	v, err := c.check(ctx, kind, opts)
	if err != nil {
		return nil, err
	}
	kind, form := c.kinds.serving(kind)
	w := &Watch{}
	w.init(ctx, v, isCollection)
	a, err := v.prepare(kind, collection, true, &w.watch)
	if err != nil {
		return nil, err
	}
	to := newBatcher(&w.core, h, form)
	return w.start(&part{subscription: &w.subscription, to: &to, name: collection}, a)
}

// check says what is wrong with a watch whatever it is of, and how its names are looked up.
func (c *Client) check(ctx context.Context, kind resource.AnyType, opts []WatchOption) (v *view, err error) {
	of := reflect.ValueOf(kind)
	switch {
	case ctx == nil:
		return nil, ErrNilContext
	case c == nil:
		return nil, errors.New("xds: the client is nil")
	case c.closed.Load():
		return nil, ErrClosed
	case kind == nil, of.Kind() == reflect.Pointer && of.IsNil(): // a nil *resource.Type[T] of package watcher
		return nil, ErrNilType
	case !of.Comparable():
		return nil, fmt.Errorf("xds: the resource type %T is not comparable", kind)
	case ctx.Err() != nil:
		return nil, ctxerr.Of(ctx)
	case len(opts) == 0:
		return c.view, nil
	}
	v = &view{client: c, table: c.view.table}
	for _, opt := range opts {
		if opt != nil {
			opt(&v.watchOptions)
		}
	}
	if v.source != nil {
		// AUTH-1: the watch's own source answers for its authorities.
		if v.table, err = v.table.WithPeer(*v.source); err != nil {
			return nil, fmt.Errorf("xds: %w", err)
		}
	}
	return v, nil
}

// ResetBackoff ends at once all waits between attempts to reach a server, and has their growth begin
// again, for a program that knows that the network is back. It does not wait for the attempts. After
// Close it does nothing. Config.Logger and Config.Backoff must not call it.
func (c *Client) ResetBackoff() { c.engine.ResetBackoff() }

// Close ends all watches, streams and connections. It waits for everything that the client runs
// except handlers, and decoders that run for a watch that came late; so also for a last call of
// Config.Store and for calls of Config.Node and Config.Transport that run, which must not call it.
// [Client.Done] reports the end of handlers too. A handler may call Close. A second call only waits
// for the first. The error is nil always.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		<-c.ended
		return nil
	}
	c.engine.Close()
	if c.keeper != nil {
		c.keeper.Close()
	}
	for _, w := range c.books.living() {
		w.end(ErrClosed)
	}
	c.gets.Close()
	close(c.ended)
	go func() {
		c.engine.Wait()
		close(c.done)
	}()
	return nil
}

// Bootstrap is a copy of the configuration that the client was made with, with the defaults of
// [bootstrap.Config.WithDefaults]. It must not be changed.
func (c *Client) Bootstrap() *bootstrap.Config { return c.boot }

// Done is closed when, after Close, the last handler has returned. No handler may wait for it.
func (c *Client) Done() <-chan struct{} { return c.done }
