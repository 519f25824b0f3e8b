// Package client is an xDS client: it subscribes to resources at management servers, keeps
// the last good version of each, and tells its watches what changed, through reconnects
// and failures, for as long as it lives.
//
// It is the untyped façade. Most programs call package watcher, which gives the same
// things typed.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
	"github.com/xdswatch/xdswatch/xdstp/nodeparams"
)

// Errors of the client's methods.
var (
	// ErrClosed says that the client is closed.
	ErrClosed = errors.New("xds: the client is closed")
	// ErrStopped is the end of a watch that was stopped.
	ErrStopped = errors.New("xds: the watch was stopped")
	// ErrNilHandler says that a watch was given no handler.
	ErrNilHandler = errors.New("xds: the handler is nil")
	// ErrNilContext says that a method was given no context.
	ErrNilContext = errors.New("xds: the context is nil")
	// ErrNilType says that a watch was given no resource type.
	ErrNilType = errors.New("xds: the resource type is nil")
	// ErrTypeConflict says that a type URL is watched with another resource type already.
	ErrTypeConflict = errors.New("xds: the type URL is watched with another resource type")
	// ErrCollection says that a name is one of a collection where one resource is meant,
	// or the other way round.
	ErrCollection = errors.New("xds: one resource is watched with Watch, a collection with WatchAll")
)

// Client is an xDS client. Its methods are safe for concurrent use and may be called
// inside handlers.
type Client struct {
	config  Config
	boot    *bootstrap.Config
	node    string // id, for errors
	engine  *engine.Engine
	table   *authority.Table
	sources sources
	layouts layouts
	view    *view // of watches that bring nothing along
	// nodeParams are added to collections of Listeners and Clusters.
	nodeParams []xdstp.Param
	closed     atomic.Bool
	ended      chan struct{} // closed when all but handlers is over
	done       chan struct{} // closed when handlers are too

	mu         sync.Mutex
	types      map[string]*machine.Type
	watches    []*core                   // those that have not ended, in no order
	unanswered tally                     // subscriptions without a first answer
	valueless  tally                     // subscriptions without a value
	waiters    map[*answer]chan struct{} // closed when the answer changes

	gets    gets
	foreign foreign
}

// New makes a client. It validates the whole configuration, with all faults joined into
// one error, and does no network I/O: a server is dialled with the first watch that needs
// it. The caller closes the client.
func New(config Config) (*Client, error) {
	if config.Bootstrap == nil {
		return nil, errors.New("xds: Config.Bootstrap is nil; see bootstrap.Load and bootstrap.Server")
	}
	boot := config.Bootstrap.WithDefaults()
	if err := errors.Join(boot.Validate(), guardFaults(config.Guards)); err != nil {
		return nil, err
	}
	table, err := authority.New(boot)
	if err != nil {
		return nil, err
	}
	alarm := config.alarm()
	config = config.withDefaults()
	params, err := nodeparams.Render(boot.Node, boot.NodeContextParams)
	if err != nil {
		return nil, err
	}
	c := &Client{
		nodeParams: params,
		config:     config, boot: boot, node: boot.Node.GetId(), table: table, view: &view{table: table},
		ended: make(chan struct{}), done: make(chan struct{}), types: map[string]*machine.Type{},
		unanswered: newTally(), valueless: newTally(), waiters: map[*answer]chan struct{}{},
	}
	c.gets.client, c.gets.slots = c, map[getKey]*getSlot{}
	c.gets.idle = max(cmp.Or(config.GetIdle, defaultGetIdle), 0)
	c.gets.most = cmp.Or(config.GetMaxNames, defaultGetMaxNames)
	c.foreign.most, c.foreign.names = limit(config.MaxForeignNames, defaultMaxForeignNames), map[[2]string]map[string]int{}
	ec, err := c.engineConfig()
	if err != nil {
		return nil, err
	}
	ec.Alarm = alarm
	for _, notice := range boot.Notices {
		config.Logger.Info(notice)
	}
	c.engine = engine.New(ec)
	return c, nil
}

func (c *Client) engineConfig() (engine.Config, error) {
	node, err := c.nodeMaker()
	if err != nil {
		return engine.Config{}, err
	}
	ec := engine.Config{
		ResourceTimeout: cmp.Or(c.config.ResourceTimeout, defaultResourceTimeout),
		Linger:          c.config.Linger,
		HandlerTimeout:  max(cmp.Or(c.config.HandlerTimeout, defaultHandlerTimeout), 0),
		NodeAlways:      c.config.NodeOnEveryRequest,
		MaxResource:     limit(c.config.MaxResourceSize, defaultMaxResourceSize),
		MaxHeld:         limit(c.config.MaxHeldSize, defaultMaxHeldSize),
		Node:            node,
		Guard:           c.judge,
		Logger:          c.config.Logger,
		Trace:           c.tracer(),
		Metrics:         c.counters(),
	}
	err = c.sources.start(c, &ec)
	return ec, err
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
// The list may stand in a file: "file:///path#entry=name" (see [Client.WatchAll]).
// While the place of a value is taken by something that has not answered yet, it stays good.
//
// The end of ctx ends the watch; so do [Watch.Stop] and [Client.Close]. Nothing is told of
// these ends.
//
// Errors: [ErrClosed], [ErrNilHandler], [ErrNilContext], [ErrNilType], [ErrTypeConflict], [ErrCollection];
// a [*ResourceError] of kind [ErrorConfig] for a malformed name, an unknown authority, a
// server that cannot be configured, or a type that a server's streams cannot carry, such as one
// without streams of its own where there is one for each type; the context's own if it is
// over; and an untyped one for a type that is not comparable and for a source of [FromSource]
// without servers.
func (c *Client) Watch(ctx context.Context, kind resource.AnyType, name string, h Handler[any], opts ...WatchOption) (*Watch, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	return c.watchOne(ctx, kind, name, h, opts)
}

// WatchTyped is [Client.Watch] for a handler of values of one type; programs call it as
// watcher.Watch. An event is made once for all watches of its resource.
func WatchTyped[T any](ctx context.Context, c *Client, t *resource.Type[T], name string, h Handler[T], opts ...WatchOption) (*Watch, error) {
	switch {
	case t == nil:
		return nil, ErrNilType
	case h == nil:
		return nil, ErrNilHandler
	}
	return c.watchOne(ctx, t, name, h, opts)
}

func (c *Client) watchOne(ctx context.Context, kind resource.AnyType, name string, h caller, opts []WatchOption) (*Watch, error) {
	o := options(opts)
	v, err := c.check(ctx, kind, o)
	if err != nil {
		return nil, err
	}
	s := &single{}
	s.init(ctx, c, v)
	a, err := c.prepare(kind, name, v, &s.watch)
	if err != nil {
		return nil, err
	}
	s.handler = spelling(h, name, a.name)
	return s.ask(kind, a, o)
}

// WatchAll subscribes to a whole collection. "*" is every resource of the type, as far as
// the top-level servers have any (xDS protocol, "Wildcard subscriptions"). A glob,
// "xdstp://authority/type/path/*", is the resources whose names have one more segment in its
// place and the same context parameters. The URL of a list collection, whose type segment is
// that of the type with "Collection" behind it, is what that lists (xRFC TP1). The handler
// gets the members' events in batches: first what is held, later what changes. The first
// state is complete with the event of kind [EventSynced], of an empty collection too; what is
// wrong with its server by then is told after it. A server that is silent about a wildcard or
// a glob for as long as Config.ResourceTimeout has nothing to add to what was asked of it by
// name: if it has given any such resource, the first state is complete; if not, the collection
// does not exist. In state of the world, where the wildcard stands beside names, it is asked for
// once more then, in the legacy form on a new stream, and complete if there is silence again. What
// concerns the collection as a whole has its name in Event.Name.
//
// The URL of a file, "file:///path", is the list collection that the file holds (xRFC TP1;
// package [github.com/xdswatch/xdswatch/transport/file] says how). The file is a source of its
// own, which a client keeps for its life as it does those of [FromSource]. What its locators
// lead to is asked of whoever answers for it. No server's locator leads to a file.
//
// The members of a list are called by their locators, and its inline entries by its URL
// with "#entry=name"; what has no name, by its URL with "#" and its index. A list is synced
// when of each member something is known: a value, that there is none, or a failure. A
// member that it lists no more is told to be removed; without a list all are, and the list
// does not exist, or has failed, until it is synced again. An entry that cannot be used, or
// comes twice, is told to have failed and hides nobody else; the list is NACKed for it, unless
// only the bootstrap has no servers.
//
// Otherwise it is as [Client.Watch].
func (c *Client) WatchAll(ctx context.Context, kind resource.AnyType, collection string, h BatchHandler[any], opts ...WatchOption) (*Watch, error) {
	if h == nil {
		return nil, ErrNilHandler
	}
	o := options(opts)
	v, err := c.check(ctx, kind, o)
	if err != nil {
		return nil, err
	}
	switch l, isList, err := c.listOf(kind, collection); {
	case err != nil:
		return nil, c.configError(kind, collection, err)
	case isList:
		return c.watchList(ctx, kind, collection, l, h, v, o)
	}
	s := &everything{batch: batcher{client: c}}
	s.init(ctx, c, v)
	s.watch.Owner, s.watch.Wildcard, s.watch.Explicit = s, true, o.explicit
	if err := c.prepareAll(kind, collection, v, &s.watch); err != nil {
		return nil, err
	}
	s.handler = spellingAll(h, collection, s.watch.Name)
	return s.start(o)
}

// wildcard is the name of everything.
const wildcard = "*"

// prepareAll checks what the watch of a collection is to be and finds its source.
func (c *Client) prepareAll(kind resource.AnyType, collection string, v *view, w *machine.Watch) error {
	r, err := v.table.ResolveCollection(kind.TypeURL(), collection)
	if err == nil {
		err = c.inContext(kind, &r, true)
	}
	if err != nil {
		return c.configError(kind, collection, err)
	}
	return c.place(kind, r, v, w)
}

// check says what is wrong with a watch whatever it is of, and how its names are looked up.
func (c *Client) check(ctx context.Context, kind resource.AnyType, o watchOptions) (*view, error) {
	switch {
	case ctx == nil:
		return nil, ErrNilContext
	case c.closed.Load():
		return nil, ErrClosed
	case kind == nil:
		return nil, ErrNilType
	case !reflect.ValueOf(kind).Comparable():
		return nil, fmt.Errorf("xds: the resource type %T is not comparable", kind)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return c.viewOf(o)
}

// guessed says whether a kind's name field is a guess ([resource.Options]).
func guessed(kind resource.AnyType) bool {
	g, ok := kind.(interface{ NameGuessed() bool })
	return ok && g.NameGuessed()
}

// typeOf finds or makes the machine's type of a kind. A type URL has one kind.
func (c *Client) typeOf(kind resource.AnyType, name string) (*machine.Type, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.types[kind.TypeURL()]
	if t == nil {
		t = &machine.Type{
			Owner: kind, URL: kind.TypeURL(), FullState: kind.FullState(), NameField: kind.NameField(),
			Guessed: guessed(kind), Guarded: len(c.config.Guards[kind.TypeURL()]) > 0, Keep: c.config.keep(kind.TypeURL()),
			Segment: xdstp.TypeSegment(kind.TypeURL()),
		}
		c.types[kind.TypeURL()] = t
	}
	if t.Owner != kind {
		return nil, c.configError(kind, name, fmt.Errorf("%w: %s", ErrTypeConflict, oneType))
	}
	return t, nil
}

// oneType is the hint for who has two.
const oneType = "a client has one value for each URL, so share one variable for all calls of resource.Proto, Custom, With or Map for it"

// kindOf is the kind of a type URL that is watched.
func (c *Client) kindOf(typeURL string) resource.AnyType {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types[typeURL].Owner.(resource.AnyType)
}

// SetNodeParameters sets the dynamic parameters of a type in the node; an empty map removes
// them: Node.dynamic_parameters, which the bootstrap's node may begin with. If they were
// others, each server that is asked for resources of the type is told at once, by a request
// of the type that has the node. Streams that begin later have them too, until the client is
// closed. Servers of version 2 of the transport are told nothing. It does not block, and the
// map is the caller's again when it returns.
//
// These are no dynamic parameters of names; see [bootstrap.DynamicParameters].
//
// Errors: [ErrClosed], and one that says which text is not UTF-8.
func (c *Client) SetNodeParameters(typeURL string, params map[string]string) error {
	texts := slices.AppendSeq(slices.AppendSeq([]string{typeURL}, maps.Keys(params)), maps.Values(params))
	if i := slices.IndexFunc(texts, func(s string) bool { return !utf8.ValidString(s) }); i >= 0 {
		return fmt.Errorf("xds: parameters of the node: %q is not UTF-8", texts[i])
	}
	if c.closed.Load() || !c.engine.Describe(typeURL, maps.Clone(params)) {
		return ErrClosed
	}
	return nil
}

// ResetBackoff ends all waits between attempts to reach a server now, for a program that
// knows that the network is back.
func (c *Client) ResetBackoff() { c.engine.ResetBackoff() }

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
	all := slices.Clone(c.watches)
	c.mu.Unlock()
	for _, w := range all {
		w.end(ErrClosed)
	}
	c.gets.close()
}
