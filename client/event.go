package client

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/wire"
)

// EventKind says what an event tells.
type EventKind uint8

// Kinds of events.
const (
	// EventUpdated has a new or changed value, or the same Secret of a file if what the Secret
	// refers to has changed.
	EventUpdated EventKind = iota + 1
	// EventDoesNotExist says that there is no such resource, and no value any more. Reason says
	// why.
	EventDoesNotExist
	// EventFailed says that there is no usable resource, and no value any more; Err says why.
	EventFailed
	// EventAmbientError says that something is wrong but the held value stays good; Err says
	// what is wrong (gRFC A88).
	EventAmbientError
	// EventRecovered says that the trouble of an EventAmbientError is over: the held value stays
	// good, and Err is nil. An EventUpdated or EventSynced says so too.
	EventRecovered
	// EventSynced says that the first state of a collection is complete, or that of a list
	// collection which exists again after it did not exist or had failed.
	EventSynced
)

func (k EventKind) String() string {
	switch k {
	case EventUpdated:
		return "updated"
	case EventDoesNotExist:
		return "does not exist"
	case EventFailed:
		return "failed"
	case EventAmbientError:
		return "ambient error"
	case EventRecovered:
		return "recovered"
	case EventSynced:
		return "synced"
	}
	return "unknown"
}

// Reason says why there is no resource.
type Reason uint8

// Reasons of [EventDoesNotExist].
const (
	ReasonTimeout  = Reason(machine.ReasonTimeout)  // the server did not answer in time
	ReasonRemoved  = Reason(machine.ReasonRemoved)  // the server removed it (delta)
	ReasonAbsent   = Reason(machine.ReasonAbsent)   // left out of a response that holds everything
	ReasonNotFound = Reason(machine.ReasonNotFound) // the server said that there is none
	ReasonTTL      = Reason(machine.ReasonTTL)      // its time to live ran out
)

func (r Reason) String() string {
	if r > ReasonTTL {
		return "unknown"
	}
	return machine.Reason(r).String()
}

// Event is something that happened to a resource whose values are of type T, or to a collection
// as a whole; then its name is the collection's, "*" or a canonical URL. The methods of [Client]
// use Event[any].
type Event[T any] struct {
	Kind   EventKind
	Reason Reason // of EventDoesNotExist
	// Stale says that the value, or the first state of the collection, is from Config.Store: a
	// server said it before the program started, and none has spoken of it since. What a server
	// says of it is told in an event of its own, an EventUpdated or EventSynced that is not stale,
	// even if the value is the same.
	Stale bool

	Type string // URL
	Name string // canonical
	// Asked is the name as the program wrote it, for a map keyed by it: for example Name without
	// the context parameters of Config.Context. For members of a collection it is Name.
	Asked     string
	Authority string // of an xdstp name
	Version   string // of the value: the resource's own in delta, else the response's
	Server    string // URI of the management server, as [bootstrap.ManagementServer.Name] tells it
	// Features are those that the bootstrap gives that server: two servers may have one URI.
	Features bootstrap.Features
	// Locator is the canonical locator of the place that serves the resource: the end of the
	// redirects, or the alternative in use; "" if it is the name itself. Name stays the name
	// that was asked for.
	Locator string
	// Instead is the newest response of the type, if the server did not answer in time: in
	// EventDoesNotExist with ReasonTimeout, and in EventFailed with an error of kind
	// ErrorTimeout. It is nil in others, and if the server sent no response of the type on the
	// stream.
	Instead *Instead
	Err     error  // of EventFailed and EventAmbientError: a [*ResourceError]
	Value   T      // of EventUpdated; shared between watches, read only
	Raw     []byte // its bytes as received; shared, read only
	// Attributes of EventUpdated are what the server sent beside the value; nil if nothing.
	Attributes *Attributes
}

// Attributes are what a server sends beside a resource's value, in the Resource of
// envoy.service.discovery.v3: delta always has it, and in state of the world resources may be
// wrapped in it. They are shared between watches, read only.
//
// A change of DoNotCache or Metadata alone is an update of the resource, with the same value;
// another order of map entries in Metadata is no change. Aliases depend on the subscriptions, so
// a change of them alone makes no event; the next event and [Client.Dump] have the newest. The
// client ignores all of them in a heartbeat.
type Attributes struct {
	// Aliases are other names of the resource, as the server lists them; the one that the
	// program asked for may be among them.
	Aliases []string
	// DoNotCache asks proxies of xDS not to cache the resource (cache_control). The client
	// holds it like any other.
	DoNotCache bool
	// Metadata is additional information on the resource; nil if there is none.
	Metadata *corev3.Metadata
}

// attributesOf is nil if nothing was said. Metadata was seen to parse when it was accepted.
func attributesOf(a *wire.Attributes) *Attributes {
	if a == nil {
		return nil
	}
	// RELAY-2: a program that is a proxy is told what it must not cache.
	own := &Attributes{DoNotCache: a.DoNotCache}
	for _, name := range a.Aliases {
		own.Aliases = append(own.Aliases, string(name))
	}
	if len(a.Metadata) > 0 {
		own.Metadata = &corev3.Metadata{}
		_ = proto.Unmarshal(a.Metadata, own.Metadata)
	}
	return own
}

// Instead is the newest response of a type on a stream, which lacked the resource that the
// client waited for. It is shared between watches, read only.
type Instead struct {
	Time  time.Time
	Count int // of its resources
	// Names are those of some of its resources, first of those that nobody subscribed to: at
	// most three, each cut after 256 bytes. Resources without a name are left out.
	Names []string
	// Err is a [*ResourceError] without a name that says why the client refused some of it, cut
	// after 512 bytes; nil if it refused nothing.
	Err error
}

func (i *Instead) String() string {
	if i == nil {
		return "the server sent no response of the type on the stream"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the newest response of the type, at %s, held ", i.Time.Format("15:04:05.000"))
	switch i.Count {
	case 0:
		b.WriteString("nothing")
	case 1:
		b.WriteString("one resource")
	default:
		fmt.Fprintf(&b, "%d resources", i.Count)
	}
	sep := ": "
	for _, name := range i.Names {
		fmt.Fprintf(&b, "%s%q", sep, name)
		sep = ", "
	}
	if i.Count > len(i.Names) && len(i.Names) > 0 {
		b.WriteString(" and others")
	}
	err := i.Err
	if re, ok := err.(*ResourceError); ok {
		err = re.Err
	}
	if err != nil {
		fmt.Fprintf(&b, "; it was NACKed: %v", err)
	}
	return b.String()
}

// insteadOf is what a program hears of the response that came in place of what a notice is about.
func (c *Client) insteadOf(n *machine.Notice) *Instead {
	in := n.Instead
	if in == nil {
		return nil
	}
	out := &Instead{Time: in.At, Count: in.Count, Names: in.Names}
	if in.Refusal != "" {
		// ERR-11: type, server and node.
		out.Err = &ResourceError{
			Kind: ErrorRejected, Type: n.TypeURL, Server: c.uri(n.Server), NodeID: c.NodeID(), Err: errors.New(in.Refusal),
		}
	}
	return out
}

// Typed returns an event with a value of type T; the zero value if the event has none, or one of
// another type. A T of [resource.Lazy] takes its message too.
func Typed[T any](ev Event[any]) Event[T] {
	value, ok := ev.Value.(T)
	if !ok && ev.Value != nil {
		if l, lazy := any(value).(holder); lazy {
			value, _ = l.Holding(ev.Value, ev.Raw).(T)
		}
	}
	return Event[T]{
		Kind: ev.Kind, Type: ev.Type, Name: ev.Name, Asked: ev.Asked, Authority: ev.Authority, Version: ev.Version, Server: ev.Server,
		Features: ev.Features, Locator: ev.Locator, Reason: ev.Reason, Instead: ev.Instead, Err: ev.Err, Value: value, Raw: ev.Raw,
		Attributes: ev.Attributes, Stale: ev.Stale,
	}
}

// Handler takes the events of one resource, on one goroutine at a time. A panic ends its watch with a
// [*PanicError], and nothing else. It must return: a handler that ends its goroutine by
// runtime.Goexit, as FailNow and Fatal of package testing do, ends its watch with
// [ErrHandlerExited]; such a test is marked as failed, and goes on.
type Handler[T any] func(Event[T])

// Batch is at most 512 events that belong together, in the order in which the server sent
// them.
type Batch[T any] struct {
	Events []Event[T] // the handler's own
	// Last says that this batch completes a response, or the values that were held when the
	// watch began, or what changed at one moment without a response: trouble, timers and times
	// to live. Such a batch may hold no events.
	Last bool
}

// Changed yields the members that have a new value.
func (b Batch[T]) Changed() iter.Seq[Event[T]] { return b.of(EventUpdated) }

// Removed yields the members that do not exist any more.
func (b Batch[T]) Removed() iter.Seq[Event[T]] { return b.of(EventDoesNotExist) }

// Failed yields the members that cannot be used.
func (b Batch[T]) Failed() iter.Seq[Event[T]] { return b.of(EventFailed) }

// Synced says whether the first state of the collection is complete with this batch.
func (b Batch[T]) Synced() bool {
	for range b.of(EventSynced) {
		return true
	}
	return false
}

func (b Batch[T]) of(k EventKind) iter.Seq[Event[T]] {
	return func(yield func(Event[T]) bool) {
		for _, ev := range b.Events {
			if ev.Kind == k && !yield(ev) {
				return
			}
		}
	}
}

// BatchHandler takes the events of many resources. It is called like a [Handler], one call at a time.
type BatchHandler[T any] func(Batch[T])

func (c *Client) newEvent(n *machine.Notice) Event[any] {
	server := c.server(n.Server)
	ev := Event[any]{
		Type: n.TypeURL, Name: n.Name, Asked: n.Name, Authority: n.Authority, Version: n.Version,
		Server: server.Name(), Features: server.Features, Instead: c.insteadOf(n), Stale: n.Stale,
	}
	if n.Fault != nil {
		ev.Err = c.resourceError(n.Fault, n.Server, n.TypeURL, n.Name)
	}
	switch n.Kind {
	case machine.NoticeUpdated:
		ev.Kind, ev.Value, ev.Raw, ev.Attributes = EventUpdated, n.Value, n.Raw, attributesOf(n.Attributes)
	case machine.NoticeDoesNotExist:
		// U-1: with what the server sent instead.
		ev.Kind, ev.Reason = EventDoesNotExist, Reason(n.Reason)
	case machine.NoticeFailed:
		ev.Kind = EventFailed
	case machine.NoticeAmbient:
		// ERR-10, U-15: its end is a kind of its own.
		if ev.Kind = EventRecovered; n.Fault != nil {
			// ERR-2: the value stays good.
			ev.Kind = EventAmbientError
		}
	case machine.NoticeSynced:
		ev.Kind = EventSynced
	}
	return ev
}
