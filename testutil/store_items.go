package testutil

import (
	"slices"
	"strconv"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/wellknown"
	"github.com/xdswatch/xdswatch/xdstp"
)

// wildcard is the name that stands for all old-style names of a type.
const wildcard = "*"

// label is a name as it was written, with its parts that matter here.
type label struct {
	text string // as it was written
	key  string // canonical; equal names have equal keys
	glob string // key of the only collection that covers it: a glob or "*"; empty if none can
	many bool   // it is a collection itself
}

// newLabel reads a name. One that is malformed is its own key, and names nothing.
func newLabel(text string) label {
	switch {
	case text == wildcard:
		return label{text: text, key: text, many: true}
	case !xdstp.IsXDSTP(text):
		return label{text: text, key: text, glob: wildcard}
	}
	n, err := xdstp.ParseReceived(text)
	if err != nil {
		return label{text: text, key: text}
	}
	l := label{text: text, key: n.String(), many: n.IsGlob()}
	if g, ok := n.Glob(); ok {
		l.glob = g.String()
	}
	return l
}

func newLabels(texts []string) []label {
	labels := make([]label, len(texts))
	for i, text := range texts {
		labels[i] = newLabel(text)
	}
	return labels
}

// item is one resource. It is not changed once it was stored.
type item struct {
	label
	aliases []label
	full    *discoveryv3.Resource
	bare    *anypb.Any
}

// newItem makes an item of a resource that has its version.
func newItem(kind resource.AnyType, r *discoveryv3.Resource) *item {
	it := &item{
		label:   newLabel(r.GetName()),
		aliases: newLabels(r.GetAliases()),
		full:    r,
		bare:    r.GetResource(),
	}
	if saysMore(r) || !namesItself(kind, r) {
		it.bare = toAny(r)
	}
	return it
}

// saysMore says whether a resource has what its message has no room for.
func saysMore(r *discoveryv3.Resource) bool {
	return r.GetTtl() != nil || len(r.GetAliases()) > 0 || r.GetCacheControl() != nil || r.GetMetadata() != nil
}

// namesItself says whether the name of a resource stands in its message.
func namesItself(kind resource.AnyType, r *discoveryv3.Resource) bool {
	if kind == nil || kind.NameField() == 0 || r.GetResource().GetTypeUrl() != kind.TypeURL() {
		return false
	}
	name, ok, err := wire.StringField(r.GetResource().GetValue(), kind.NameField())
	return err == nil && ok && string(name) == r.GetName()
}

// keys are the names by which an item can be found.
func (it *item) keys() []label { return append([]label{it.label}, it.aliases...) }

// shelf holds the items of one type.
type shelf struct {
	kind     resource.AnyType // nil if it is not a well-known type
	revision int              // counts the changes
	items    map[string]*item
	aliases  map[string]*item
}

func newShelf(typeURL string) *shelf {
	h := &shelf{items: make(map[string]*item), aliases: make(map[string]*item)}
	if e, ok := wellknown.ByTypeURL(typeURL); ok {
		h.kind = e.Kind
	}
	return h
}

// version is the version of the shelf in state of the world.
func (h *shelf) version() string { return strconv.Itoa(h.revision) }

// fullState says whether a state-of-the-world response restates everything.
func (h *shelf) fullState() bool { return h.kind != nil && h.kind.FullState() }

// find gives the item of a name or alias; nil if there is none. A name goes before an alias.
func (h *shelf) find(key string) *item {
	if it := h.items[key]; it != nil {
		return it
	}
	return h.aliases[key]
}

// put stores an item, and says whether clients will see a change: not if its version and aliases stand
// already.
func (h *shelf) put(it *item) bool {
	old := h.items[it.key]
	if old != nil {
		h.take(old)
	}
	h.items[it.key] = it
	for _, a := range it.aliases {
		h.aliases[a.key] = it
	}
	if old != nil && it.sameAs(old) {
		return false
	}
	h.revision++
	return true
}

func (it *item) sameAs(old *item) bool {
	return it.full.GetVersion() == old.full.GetVersion() &&
		slices.Equal(it.full.GetAliases(), old.full.GetAliases())
}

// drop removes the item of a name, not of an alias, and says whether there was one.
func (h *shelf) drop(key string) bool {
	it := h.items[key]
	if it != nil {
		h.revision++
		h.take(it)
	}
	return it != nil
}

// take removes an item.
func (h *shelf) take(it *item) {
	delete(h.items, it.key)
	for _, a := range it.aliases {
		if h.aliases[a.key] == it {
			delete(h.aliases, a.key)
		}
	}
}
