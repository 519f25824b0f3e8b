package testutil

import (
	"slices"
	"strconv"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// wildcard is the name that stands for all old-style names of a type.
const wildcard = "*"

// label is a name as it was written, with its parts that matter here.
type label struct {
	text string   // as it was written
	key  string   // canonical; equal names have equal keys
	keys []string // what it can be subscribed to by: key, and the only collection that covers it, a glob or "*"
	many bool     // it is a collection itself
}

// newLabel reads a name. One that is malformed is its own key, and names nothing.
func newLabel(text string) label {
	l := label{text: text, key: text, keys: []string{text}}
	if !xdstp.IsXDSTP(text) {
		if l.many = text == wildcard; !l.many {
			l.keys = append(l.keys, wildcard)
		}
		return l
	}
	n, err := xdstp.ParseReceived(text)
	if err != nil {
		return l
	}
	l.key, l.many = n.String(), n.IsGlob()
	l.keys[0] = l.key
	if g, ok := n.Glob(); ok {
		l.keys = append(l.keys, g.String())
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

// item is one resource. Among its keys are its aliases. It is not changed once it was stored.
type item struct {
	label
	full *discoveryv3.Resource
	bare *anypb.Any
}

// newItem makes an item of a resource that has its version.
func newItem(kind resource.AnyType, r *discoveryv3.Resource) *item {
	it := &item{label: newLabel(r.GetName()), full: r, bare: r.GetResource()}
	for _, alias := range newLabels(r.GetAliases()) {
		it.keys = append(it.keys, alias.key)
	}
	if saysMore(r) || !namesItself(kind, r) {
		it.bare = toAny(r)
	}
	return it
}

// sameAs says whether clients see no change from one item to another of its name: the version and the
// aliases stand.
func (it *item) sameAs(other *item) bool {
	return (it.full == nil) == (other.full == nil) && it.full.GetVersion() == other.full.GetVersion() &&
		slices.Equal(it.full.GetAliases(), other.full.GetAliases())
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

// shelf holds the items of one type.
type shelf struct {
	kind     resource.AnyType // nil if it is not a well-known type
	revision int              // counts the changes
	items    map[string]*item
}

// version is the version of the shelf in state of the world.
func (h *shelf) version() string { return strconv.Itoa(h.revision) }

// fullState says whether a state-of-the-world response restates everything.
func (h *shelf) fullState() bool { return h.kind != nil && h.kind.FullState() }

// put stores an item.
func (h *shelf) put(it *item) {
	if old := h.items[it.key]; old == nil || !old.sameAs(it) {
		h.revision++
	}
	h.items[it.key] = it
}

// drop removes the item of a name, not of an alias, if there is one.
func (h *shelf) drop(key string) {
	if h.items[key] != nil {
		h.revision++
		delete(h.items, key)
	}
}
