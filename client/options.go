package client

import (
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// WatchOption changes a watch, a set, or a lookup by [Client.Get]. [ExplicitWildcard] is for
// [Client.WatchAll] of "*"; others ignore it. Get ignores an [InitialFetchTimeout], since its callers have
// contexts. Of several options for one thing the last counts: [AtStartup] has both a source and an
// initial fetch timeout. A nil option is none.
type WatchOption func(*watchOptions)

type watchOptions struct {
	explicit  bool
	source    *bootstrap.Source // nil: the bootstrap's
	scope     string
	fetch     *time.Duration // 0 for no bound, negative if silence is no absence either; nil: the source's
	deltaOnly bool
	list      bool
	received  bool
}

// ExplicitWildcard sends the wildcard as the name "*" also where it is the only subscription.
// Without it the client uses the older form there, which all servers know: a first request
// without names (xDS protocol, "Wildcard subscriptions").
func ExplicitWildcard() WatchOption { return func(o *watchOptions) { o.explicit = true } }

// ListByName has [Client.WatchAll] take an old-style name as that of a list collection, unless it is "*" or
// ends in "/*". Structured names say themselves what they are; the collections of LEDS may have names of either
// kind (LedsClusterLocalityConfig.leds_collection_name, gRFC A95). Without it an old-style name is
// [ErrCollection], since one resource may be meant. It changes nothing else. The members' events have the
// collection's name in place of its URL.
func ListByName() WatchOption { return func(o *watchOptions) { o.list = true } }

// FromSource gives a watch a source of its own, which goes before the bootstrap's: the one that
// comes with the name, such as the eds_config of a Cluster (xRFC TP1). It serves old-style names
// and the authorities that it lists; see [bootstrap.Config.ConfigSource]. Servers that the
// bootstrap has too share their connections; if the whole list is the same, the watch is like
// any other. The client keeps sources until it is closed, some 6 KiB for each.
func FromSource(s bootstrap.Source) WatchOption {
	return func(o *watchOptions) { o.source = &s }
}

// DeltaOnly makes a watch an error whose names some server is asked for in state of the world. It
// is for types that the protocol has in delta alone, such as virtual hosts on demand
// (VHDS); without it an aggregated stream asks for any type in either variant.
func DeltaOnly() WatchOption { return func(o *watchOptions) { o.deltaOnly = true } }

// Received marks names that the program has from a server, such as those of the clusters in a
// RouteConfiguration, or from a template of the bootstrap: they may have context parameters that begin with
// "xds.", as members of a collection have those of the collection, and values that begin with '@'. A program's own
// names may not, since the client adds the former itself and the latter are reserved (xRFC TP1).
func Received() WatchOption { return func(o *watchOptions) { o.received = true } }

// InScope keeps a watch apart from those of other scopes: it has streams and values of its own,
// over shared connections, so that a fallback in one part of a program does not affect another
// (gRFC A71). Without it a watch is in the scope "". The client keeps a scope until it is
// closed.
func InScope(name string) WatchOption {
	return func(o *watchOptions) { o.scope = name }
}

// InitialFetchTimeout is how long a watch waits for its first answer until its handler gets one
// event of kind [EventFailed] whose error is a [*FetchTimeoutError]: the program may start
// without the resource, and [Client.Ready] does. The watch goes on and takes a later answer. An
// answer is a value, an absence or a rejection; that a server cannot be reached is none. The
// time begins with the watch, also while there is no stream, and does not run while handlers
// hold up the stream's reading; it begins anew in each place that the name leads to before its
// first answer. 0 is no bound. With a negative time, as [bootstrap.WaitForever],
// the server may also be silent for longer than Config.ResourceTimeout, and the watch gets no
// absence for that, unless another watch of the same name would.
//
// Without it the source of the name decides (initial_fetch_timeout of
// envoy.config.core.v3.ConfigSource). Names without such a source have no bound but
// Config.ResourceTimeout, which is another thing: how long a server may be silent after the
// client subscribed to the resource.
func InitialFetchTimeout(d time.Duration) WatchOption {
	return func(o *watchOptions) { o.fetch = &d }
}

// AtStartup marks a watch as one that the bootstrap asks for, with the type and the collection
// of the subscription; see [bootstrap.Config.Startup].
func AtStartup(s bootstrap.Subscription) WatchOption {
	return func(o *watchOptions) {
		o.source, o.fetch = s.Source, &s.InitialFetchTimeout
	}
}
