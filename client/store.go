package client

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/internal/keeper"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
)

// Store keeps the resources that a client accepted, so that the program can start while no server
// can be reached ("last known good"). Package
// [github.com/xdswatch/xdswatch/store] has one, a directory.
//
// The client calls one of the methods at a time, on a goroutine of its own: while they block the client
// keeps running, and [Client.Close] waits. A panic, or the end of that goroutine, is an error like
// others. A method that fails returns an error, which the client logs; it costs the resources that
// were to be loaded or saved, and nothing else. What a store returns is decoded and validated like
// a server's response.
//
// A store that two clients share is called by both at once. Clients with one node ID share its
// sections too, and what a complete collection of one lacks is forgotten for both: so they are to ask
// the same servers, or to have a node ID or a store each.
type Store interface {
	// Load calls yield for each kept resource of a section that has one of the names, or for all of
	// them if names is nil, in any order. It may yield others too. The client does not change the
	// bytes, and keeps them until Load returns, and a little longer. A time to live that is over,
	// and other servers and nodes, are the client's concern; the age of what is kept is the store's.
	Load(section StoreSection, names []string, yield func(StoredResource)) error
	// Save keeps each of the resources in place of one of its name, and forgets the names of those
	// without Resource. It does not keep the bytes. If it returns [ErrNotSaved] the client saves the
	// same, or what has come in its place, again some seconds later. All of it was good at the time of the call; with no changes at all, which
	// happens every hour, everything is still good that was saved since the client was made.
	Save(section StoreSection, changes []StoredResource) error
	// Names are the names of all that is kept in a section, in any order. The client forgets those that a complete
	// wildcard or glob lacks; if Names fails, they stay until the collection's first state comes again.
	Names(section StoreSection) ([]string, error)
}

// ErrNotSaved is the error of [Store.Save] if nothing was saved, and may be a moment later.
var ErrNotSaved = keeper.ErrNotSaved

// StoreSection is a part of a store: the resources of one type that one source answers for. All of
// its fields together are its key.
type StoreSection struct {
	Type string // URL
	// Authority of the names: that of structured names, "#old" for names without an authority, and
	// "#default" for all the authorities that the bootstrap does not list.
	Authority  string
	Scope      string // of [InScope]
	Source     string // that of [FromSource], in a text of the client's; "" for the bootstrap's
	Parameters string // the dynamic parameters of its names (xRFC TP2), encoded; "" for none
	Node       string // ID of the client's node
}

// StoredResource is a resource in a store.
type StoredResource struct {
	Name string // canonical; of a collection "*" or its URL, whose first state was complete
	// Resource is an encoded envoy.service.discovery.v3.Resource, with version, the Any and what the
	// server sent beside it; for a collection its name alone. The name and the type URL of others may be
	// left out. nil only for Save, of what is to be forgotten.
	Resource []byte
	Server   string    // URI of the server that sent it, as in [Event]
	Updated  time.Time // when the client accepted it
	Expires  time.Time // the end of its time to live; zero if it has none
}

// storable are the types that a store keeps unless the program asks for more: those that hold no
// secrets by themselves. Their contents are looked at all the same.
var storable = []string{
	"envoy.config.listener.v3.Listener",
	"envoy.config.route.v3.RouteConfiguration",
	"envoy.config.route.v3.ScopedRouteConfiguration",
	"envoy.config.route.v3.VirtualHost",
	"envoy.config.cluster.v3.Cluster",
	"envoy.config.endpoint.v3.ClusterLoadAssignment",
	"envoy.config.endpoint.v3.LbEndpoint",
	"envoy.config.core.v3.TypedExtensionConfig",
	"envoy.service.runtime.v3.Runtime",
}

// stores says whether a type's resources may be kept.
func (c Config) stores(typeURL string) bool {
	if c.Store == nil {
		return false
	}
	name := strings.TrimPrefix(typeURL, resource.TypePrefix)
	// LKG-1: types are allowed, and not denied.
	return slices.Contains(storable, strings.TrimSuffix(name, "Collection")) || slices.Contains(c.StoreTypes, typeURL)
}

// isSecret says whether a type URL is of a Secret, or of a list of them.
func isSecret(typeURL string) bool {
	short := strings.TrimSuffix(typeURL[strings.LastIndexByte(typeURL, '.')+1:], "Collection")
	return short == "Secret"
}

// storeHost is the store of a client, as its keeper needs it; it implements [keeper.Host].
type storeHost struct{ *Client }

// Section implements [keeper.Host].
func (c storeHost) Section(source int, typeURL string) (s keeper.Section, structured string) {
	place := c.sources.Source(source).Place
	if c.madeID.Load() == nil {
		c.makeNode() // no stream has asked for it, maybe since no server can be reached
	}
	at := StoreSection{
		Type: typeURL, Authority: place.Authority, Scope: place.Scope, Source: place.Peer, Node: c.NodeID(),
		Parameters: encodeParams(c.paramsOf(place.Key)),
	}
	switch {
	case place.Old:
		at.Authority = authority.OldLabel
	case place.Default:
		at.Authority = authority.DefaultLabel
	}
	return section{c.config.Store, at}, place.Authority
}

// Servers implements [keeper.Host].
func (c storeHost) Servers(source int) []int { return c.sources.Source(source).Servers }

// URI implements [keeper.Host].
func (c storeHost) URI(server int) string { return c.uri(server) }

// Loaded implements [keeper.Host].
func (c storeHost) Loaded(l machine.Loaded) { c.engine.Post(l) }

// Left implements [keeper.Host].
func (c storeHost) Left(p any) { c.left("Config.Store", "", p) }

// section is a section of the program's store; it implements [keeper.Section].
type section struct {
	Store
	at StoreSection
}

// Load implements [keeper.Section].
func (s section) Load(names []string, yield func(keeper.Resource)) error {
	return s.Store.Load(s.at, names, func(r StoredResource) { yield(keeper.Resource(r)) })
}

// Save implements [keeper.Section].
func (s section) Save(changes []keeper.Resource) error {
	own := slices.Grow([]StoredResource(nil), len(changes))
	for _, c := range changes {
		own = append(own, StoredResource(c))
	}
	return s.Store.Save(s.at, own)
}

// Names implements [keeper.Section].
func (s section) Names() ([]string, error) { return s.Store.Names(s.at) }

// encodeParams writes dynamic parameters as a text.
func encodeParams(params map[string]string) string {
	values := url.Values{}
	for key, value := range params {
		values.Set(key, value)
	}
	return values.Encode()
}
