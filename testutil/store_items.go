package testutil

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
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
	typeURL string
	full    *discoveryv3.Resource // nil if a client knows no more than the label
	bare    *anypb.Any            // in state of the world
}

// newItem copies a resource, and sees that it has a version.
func newItem(r *discoveryv3.Resource) (*item, error) {
	url, err := typeOf(r)
	if err != nil {
		return nil, err
	}
	r = proto.CloneOf(r)
	if r.Version == "" { // the same for the same content, over restarts and servers
		h := fnv.New64a()
		_, _ = h.Write(toAny(r).GetValue()) // to a hash, which does not fail
		r.Version = strconv.FormatUint(h.Sum64(), 16)
	}
	it := &item{label: newLabel(r.GetName()), typeURL: url, full: r, bare: r.GetResource()}
	for _, alias := range newLabels(r.GetAliases()) {
		it.keys = append(it.keys, alias.key)
	}
	if saysMore(r) || !namesItself(url, r) {
		it.bare = toAny(r)
	}
	return it, nil
}

// typeOf gives the type URL under which a resource is served.
func typeOf(r *discoveryv3.Resource) (string, error) {
	name := r.GetName()
	switch {
	case name == "" || name == wildcard:
		return "", fmt.Errorf("%w: no name of its own", ErrBadResource)
	case r.GetResource() == nil:
		return "", fmt.Errorf("%w: no payload", ErrBadResource)
	case !xdstp.IsXDSTP(name):
		return r.GetResource().GetTypeUrl(), nil
	}
	n, err := xdstp.Parse(name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadResource, err)
	}
	if n.IsGlob() {
		return "", fmt.Errorf("%w: a glob has members only", ErrBadResource)
	}
	return resource.TypePrefix + n.Type, nil
}

// sameAs says whether clients see no change from one item, nil if there is none, to another of its name: the
// version and the aliases stand.
func (it *item) sameAs(other *item) bool {
	return it != nil && it.full != nil && it.full.GetVersion() == other.full.GetVersion() &&
		slices.Equal(it.full.GetAliases(), other.full.GetAliases())
}

// saysMore says whether a resource has what its message has no room for.
func saysMore(r *discoveryv3.Resource) bool {
	return r.GetTtl() != nil || len(r.GetAliases()) > 0 || r.GetCacheControl() != nil || r.GetMetadata() != nil
}

// namesItself says whether the name of a resource stands in its message.
func namesItself(typeURL string, r *discoveryv3.Resource) bool {
	e, ok := wellknown.ByTypeURL(typeURL)
	if !ok || e.Kind.NameField() == 0 || r.GetResource().GetTypeUrl() != typeURL {
		return false
	}
	name, ok, err := wire.StringField(r.GetResource().GetValue(), e.Kind.NameField())
	return err == nil && ok && string(name) == r.GetName()
}

// shelf holds the items of one type.
type shelf struct {
	fullState bool // a state-of-the-world response restates everything
	revision  int  // counts the changes, and is the version in state of the world
	items     map[string]*item
}
