package testutil

import (
	"errors"
	"fmt"
	"strings"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/wellknown"
	"github.com/xdswatch/xdswatch/xdstp"
)

// ErrBadResource is the error of what a [Store] is asked to serve.
var ErrBadResource = errors.New("resource cannot be served")

// listSuffix ends the type of a list collection (xRFC TP1).
const listSuffix = "Collection"

// ListEntry is a member of a list collection (xds.core.v3.CollectionEntry): a locator if
// Locator is set, else an inline entry.
type ListEntry struct {
	// Locator is the URL of the member, "xdstp://…", with directives if wanted.
	Locator string
	// Name of an inline entry; may be empty.
	Name string
	// Version of an inline entry; may be empty.
	Version string
	// Resource of an inline entry; an *anypb.Any is served as it stands.
	Resource proto.Message
}

// Set adds resources, from [Wrapped] as a rule, and replaces those of the same name. It is
// one change to the clients, whatever their number. The type of a resource is the one in
// its structured name, be its payload of that type or not, or else that of its payload.
// Aliases, the TTL, cache control and metadata are served as they are; there are no
// heartbeats. A version that is left empty is made from the content. A resource is sent again
// when its version or its aliases change. The resources are copied.
//
// The error is [ErrBadResource], of a resource without a name or payload or with a
// malformed name or a glob; nothing is changed then.
func (s *Store) Set(resources ...*discoveryv3.Resource) error {
	items := make([]*item, len(resources))
	for i, r := range resources {
		var err error
		if items[i], err = newItem(r); err != nil {
			return fmt.Errorf("set %q: %w", r.GetName(), err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		h := s.shelf(it.typeURL)
		if !h.items[it.key].sameAs(it) {
			h.revision++
		}
		h.items[it.key] = it
	}
	s.happened()
	return nil
}

// Remove removes resources of a type by their names, in one change. Names that do not exist
// are passed over.
func (s *Store) Remove(typeURL string, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.shelf(typeURL)
	for _, l := range newLabels(names) {
		if h.items[l.key] != nil {
			h.revision++
			delete(h.items, l.key)
		}
	}
	s.happened()
}

// Redirect serves an xds.core.v3.ResourceLocator under a structured name, which sends
// clients to a URL "xdstp://…" instead (xRFC TP1, "Redirects"). The error is
// [ErrBadResource], or the *xdstp.Error of the URL.
func (s *Store) Redirect(name, url string) error {
	l, err := locatorOf(url)
	if err == nil && !xdstp.IsXDSTP(name) {
		err = fmt.Errorf("%w: not a structured name", ErrBadResource)
	}
	if err != nil {
		return fmt.Errorf("redirect %q: %w", name, err)
	}
	return s.Set(Wrapped(name, "", l))
}

// List serves a list collection under a structured name whose type is that of the members
// and the suffix "Collection" (xRFC TP1, "List collections"). The members' own resources
// are set for themselves. The error is [ErrBadResource], or the *xdstp.Error of a locator.
func (s *Store) List(name string, entries ...ListEntry) error {
	n, err := xdstp.Parse(name)
	if err != nil || !strings.HasSuffix(n.Type, listSuffix) {
		return fmt.Errorf("list %q: %w: want the structured name of a type …%s", name, ErrBadResource, listSuffix)
	}
	list := new(listenerv3.ListenerCollection) // the messages of all types have the same fields
	for i, e := range entries {
		m, err := e.proto()
		if err != nil {
			return fmt.Errorf("list %q: entry %d: %w", name, i, err)
		}
		list.Entries = append(list.Entries, m)
	}
	return s.Set(Wrapped(name, "", &anypb.Any{TypeUrl: resource.TypePrefix + n.Type, Value: toAny(list).GetValue()}))
}

// shelf gives the shelf of a type; the caller holds mu.
func (s *Store) shelf(typeURL string) *shelf {
	h := s.shelves[typeURL]
	if h == nil {
		e, ok := wellknown.ByTypeURL(typeURL)
		h = &shelf{fullState: ok && e.Kind.FullState(), items: make(map[string]*item)}
		s.shelves[typeURL] = h
	}
	return h
}

func (e ListEntry) proto() (*xdscorev3.CollectionEntry, error) {
	switch {
	case (e.Locator == "") == (e.Resource == nil):
		return nil, fmt.Errorf("%w: want a locator or an inline resource", ErrBadResource)
	case e.Resource != nil:
		inline := &xdscorev3.CollectionEntry_InlineEntry{Name: e.Name, Version: e.Version, Resource: toAny(e.Resource)}
		return &xdscorev3.CollectionEntry{ResourceSpecifier: &xdscorev3.CollectionEntry_InlineEntry_{InlineEntry: inline}}, nil
	}
	l, err := locatorOf(e.Locator)
	return &xdscorev3.CollectionEntry{ResourceSpecifier: &xdscorev3.CollectionEntry_Locator{Locator: l}}, err
}

func locatorOf(url string) (*xdscorev3.ResourceLocator, error) {
	l, err := xdstp.ParseLocator(url)
	if err != nil {
		return nil, err
	}
	return l.Proto()
}
