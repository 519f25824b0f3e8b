package client

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/transport/file"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Version is the version of this library, which the client sends as user_agent_version.
const Version = "0.1.0"

// Variant is the variant of the xDS protocol ("Variants of the xDS Transport Protocol").
type Variant uint8

// The variants.
const (
	VariantFromBootstrap Variant = iota // as the bootstrap says
	VariantSotW                         // a response restates everything
	VariantDelta                        // a response says what changed
)

// Streams says how types share streams (xDS protocol, "Aggregated Discovery Service").
type Streams uint8

// The values of Streams.
const (
	StreamsFromBootstrap Streams = iota // as the bootstrap says
	StreamsAggregated                   // one stream a server
	StreamsPerType                      // one stream a server and type
)

// DeletionPolicy says how long the client keeps a value after the server has deleted its
// resource. While the client keeps it, its watches have had an ambient error that is
// [ErrDeletionKept]. At a server with ignore_resource_deletion (gRFC A53) the client keeps each
// value for good.
type DeletionPolicy time.Duration

// The policies; see also [DeletionAfter].
const (
	DeletionHonour DeletionPolicy = 0  // the value is removed at once
	DeletionKeep   DeletionPolicy = -1 // the value stays until the server has the resource again
)

// DeletionAfter removes a value when its resource was deleted for that long, unless the server
// sends the resource again before, valid or not. Management servers may delete a resource before
// the resources that refer to it have changed, as go-control-plane removes a cluster before its
// routes: with a grace, a lookup meanwhile still finds the value. A grace of 0 or less is
// [DeletionHonour]. The time does not run while handlers hold up the reading of the server's
// responses, and runs on when another server becomes active.
func DeletionAfter(grace time.Duration) DeletionPolicy { return DeletionPolicy(max(grace, 0)) }

// Config configures a client. Only Bootstrap has to be set.
type Config struct {
	// Bootstrap says which servers there are and who the client is.
	Bootstrap *bootstrap.Config
	// Logger takes what an operator should know. With nil the client logs only panics of the
	// program's code, with their stack, to slog.Default. The client's own loop calls the logger, as do
	// [New], the goroutine that uses Store, and whatever of the program's has panicked; so its
	// slog.Handler must not call the client.
	Logger *slog.Logger
	// Node, if set, returns the node of each new stream. It gets a copy of the node that the
	// client would send, without the changes of [Client.SetNodeParameters], which the client
	// adds afterwards. If it panics or ends its goroutine (runtime.Goexit), or the node cannot be
	// encoded, the stream has the bootstrap's node. It must not block for long, nor call [Client.Close]: the stream waits
	// for it, and Close for the stream. Store keeps apart what nodes of other IDs were given, so the ID should be the same
	// each time; the client also asks for it where Store needs it before the first stream.
	Node func(*corev3.Node) *corev3.Node
	// NodeOnEveryRequest sends the node with every request; otherwise the client sends it with a
	// stream's first request only (xDS protocol, "Basic Protocol Overview"), unless the
	// bootstrap asks for more (Envoy's set_node_on_first_message_only).
	NodeOnEveryRequest bool

	// Variant overrides what the bootstrap says of its servers.
	Variant Variant
	// Streams overrides what the bootstrap says of its servers.
	Streams Streams

	// ResourceTimeout is how long a server may be silent about a resource, after the client
	// subscribed to it on an open stream, until the resource counts as absent. 0 means 15
	// seconds, or 30 at a server with resource_timer_is_transient_error; negative never (xDS
	// protocol, "Knowing When a Requested Resource Does Not Exist"; gRFC A57, A88). With a
	// stream for each type, in state of the world, if names that were added to a stream stay
	// unknown for two seconds in which the server sends nothing, or for half this time if that is
	// less, the client subscribes to them once more on a new stream, with a timer of their own.
	ResourceTimeout time.Duration
	// Linger is how long the client keeps a stream, or the attempt to open one, after its last
	// watch has ended. 0 means 500 milliseconds; negative not at all. After an attempt that it
	// gave up the client pauses for less than the first wait of Backoff.
	Linger time.Duration
	// Backoff makes the policy of the waits between attempts for one stream. nil means
	// exponential from 500 ms by 1.6 to 30 s, with 50 % jitter and no end; Envoy's
	// retry_back_off in a bootstrap sets the two bounds. Between failed polls the wait is the
	// refresh delay with its jitter, if that is not shorter than 500 ms. If a policy returns
	// [backoff.Stop] the client waits 30 s; if it is nil, panics or ends its
	// goroutine the client uses the exponential one with 500 ms and 30 s, and logs that. The client's
	// own loop waits for Backoff and its policies, so they must not block, nor call the client.
	//
	// A wait continues when the watches end, so a program that watches and stops in a loop does
	// not shorten it. The client resets a policy when its stream outlived the last wait or was
	// not wanted for longer than that, and in [Client.ResetBackoff]. After a stream that worked
	// the client waits for a random time of less than the first wait; to learn the first wait of
	// a policy that is no [backoff.ExponentialBackOff] it asks the policy once, and resets it.
	Backoff func() backoff.BackOff

	// Context returns, for a type URL, the context parameters that the client adds to the
	// structured names that the program asks for: what the client can do with the resource, and
	// what is known of it (xRFC TP1, "Context parameters"). Names in events have them. The
	// client also adds Envoy's node_context_params, to collections of Listeners and Clusters.
	// nil adds nothing. Watch and the other methods that take names call it; it must not block, and
	// its panic reaches their caller.
	Context xdstp.ContextFunc
	// DeletionPolicy is that of all types that are not in Deletions. DeletionKeep has the effect
	// of the feature ignore_resource_deletion at each server (gRFC A53).
	DeletionPolicy DeletionPolicy
	// Deletions are policies by type URL; a list collection has a type of its own. [New] refuses a key that is no
	// type URL.
	Deletions map[string]DeletionPolicy
	// MaxResourceSize is the largest resource that the client accepts, in bytes of its payload.
	// 0 means 16 MiB; negative no bound but that of a message. The client NACKs a larger one,
	// with an error that names the limit and this field, and keeps the value that it holds.
	MaxResourceSize int
	// MaxHeldSize is how many bytes of payloads the client holds from the server of one stream,
	// collections included. 0 means 4 GiB; negative no bound. The client NACKs a resource that
	// would exceed it, as with MaxResourceSize. A payload with several names, its aliases,
	// counts once; decoded values, which the program may keep, do not count.
	MaxHeldSize int64
	// MaxForeignNames is how many names of another authority, at other servers, the resources of
	// one authority may lead to, by redirects and list collections together (xRFC TP1). 0 means
	// 10,000; negative no bound. A name beyond it has an event of kind [EventFailed] whose error
	// is [ErrForeignNames]; the client subscribes to it when there is room and the server sends
	// the list again.
	MaxForeignNames int
	// SkipValidation leaves out the messages' own validation rules (PGV).
	SkipValidation bool

	// Store keeps the resources that the client accepts, for a start while no server can be reached
	// ("last known good"); nil for none. Watches get what it has as stale ([Event.Stale]) when every
	// server of a name has failed, or has sent nothing of the type for a second, and until a server
	// speaks of it. The client claims no stale version to a server. It saves within some two
	// seconds, and on [Client.Close]. Resources of files are not kept.
	//
	// The client never keeps a Secret, nor a resource that holds an inline key or another credential
	// that the protos mark, or an Any that the program does not link, since it cannot look into that. It does
	// keep headers that routes add and URLs, which may hold tokens and passwords.
	Store Store
	// StoreTypes are the URLs of further types that Store may keep, beside Listener,
	// RouteConfiguration, ScopedRouteConfiguration, VirtualHost, Cluster, ClusterLoadAssignment,
	// LbEndpoint, TypedExtensionConfig and Runtime, and their list collections. For a type that is no
	// message which the program links, the program answers for the content. [New] refuses a Secret, and what is no type URL.
	StoreTypes []string

	// HandlerTimeout is how long a handler, a guard or a function of Trace or Metrics may run
	// until the client reports it, since events wait for it: in a log line at WARN, in
	// [Client.Gauges], and in the errors of calls that wait in vain. 0 means 5 seconds; negative
	// never.
	HandlerTimeout time.Duration
	// GetIdle is how long [Client.Get] keeps a name after its last use. 0 means a minute;
	// negative not at all. Get keeps a name with a value while its server cannot be reached.
	GetIdle time.Duration
	// GetMaxNames is how many names [Client.Get] keeps at most; for one more it returns
	// [ErrTooManyNames], if none is idle. 0 means 10,000; negative no bound.
	GetMaxNames int

	// Guards judge the responses of a type as a whole, by type URL; the first error counts.
	// [New] refuses a key that is no type URL. The client applies responses of other types part
	// by part while it decodes them; those of a guarded type after it has decoded the whole.
	Guards map[string][]Guard

	// Trace is called for streams, requests and responses; nil for none.
	Trace *Trace
	// Metrics counts what gRFC A78 counts; nil for nothing. See also [Client.Gauges].
	Metrics *Metrics

	// GRPC configures connections: keepalive, sizes, headers, dial options.
	GRPC transport.GRPCConfig
	// REST configures polling, of servers that have REST in the bootstrap.
	REST transport.RESTConfig
	// File configures the reading of files, of servers that have File in the bootstrap.
	File file.Config
	// Transport makes connections instead of GRPC, REST and File. [New], and a watch of a source that
	// the client does not know yet, call Build too, to check a server's configuration; a panic there
	// reaches the caller. It must not call the client.
	Transport transport.Builder
}

// faults says which values of fields are none of theirs, and which texts that should be URLs of types are none: what is
// configured for them would be for nothing.
func (c Config) faults() error {
	var faults []error
	if c.Variant > VariantDelta {
		faults = append(faults, fmt.Errorf("xds: Config.Variant: %d is no variant", c.Variant))
	}
	if c.Streams > StreamsPerType {
		faults = append(faults, fmt.Errorf("xds: Config.Streams: %d is none of its values", c.Streams))
	}
	refuse := func(field, url, why string) {
		faults = append(faults, fmt.Errorf("xds: Config.%s: %q %s", field, url, why))
	}
	check := func(field, url string) {
		if host, name, _ := strings.Cut(url, "/"); host == "" || !protoreflect.FullName(name).IsValid() {
			refuse(field, url, "is no type URL; want "+resource.TypePrefix+" and the full name of a message")
		}
	}
	for _, url := range slices.Sorted(maps.Keys(c.Deletions)) {
		check("Deletions", url)
	}
	for _, url := range slices.Sorted(maps.Keys(c.Guards)) {
		check("Guards", url)
	}
	for _, url := range c.StoreTypes {
		if check("StoreTypes", url); isSecret(url) {
			refuse("StoreTypes", url, "is a Secret, which is never kept")
		}
	}
	return errors.Join(faults...)
}

// afterDeletion is how long a value is held whose resource is deleted, by its type.
func (c Config) afterDeletion(typeURL string) time.Duration {
	policy, ok := c.Deletions[typeURL]
	if !ok {
		policy = c.DeletionPolicy
	}
	// ERR-4, U-14: the program's policy for the type.
	return time.Duration(policy)
}
