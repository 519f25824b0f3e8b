package client

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// kinds are the resource types that the program has used, by their URLs. Safe for concurrent use.
type kinds struct {
	config *Config

	mu    sync.Mutex
	types map[string]*machine.Type // the Owner is the first resource type that the program used with the URL
}

// owned returns the machine's type of a kind's URL. If there is none yet it makes one, which the kind owns
// from then on.
func (k *kinds) owned(kind resource.AnyType) *machine.Type {
	k.mu.Lock()
	defer k.mu.Unlock()
	url := kind.TypeURL()
	t := k.types[url]
	if t == nil {
		t = &machine.Type{
			Owner: kind, URL: url, FullState: kind.FullState(), NameField: kind.NameField(), Guessed: guessed(kind),
			Guarded: len(k.config.Guards[url]) > 0, Keep: k.config.afterDeletion(url),
			Segment: xdstp.TypeSegment(url), Stored: k.config.stores(url),
		}
		k.types[url] = t
	}
	return t
}

// typeOf is the machine's type of a kind, which has its URL. The error is [ErrTypeConflict].
func (k *kinds) typeOf(kind resource.AnyType) (*machine.Type, error) {
	t := k.owned(kind)
	// U-13: a type URL has one kind.
	if t.Owner != kind {
		return nil, fmt.Errorf("%w: %s", ErrTypeConflict, oneType)
	}
	return t, nil
}

// oneType is the hint in the text of [ErrTypeConflict].
const oneType = "a client has one value for each URL, so share one variable for all calls of resource.Proto, Custom, With or Map for it"

// of is the kind of a type URL that is watched.
func (k *kinds) of(typeURL string) resource.AnyType {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.types[typeURL].Owner.(resource.AnyType)
}

// serving is the kind that the client uses for a watch of a kind, and the form of the watch's
// values. A type URL has one kind, whose values the client makes; a type and its lazy form are
// two forms of it. Whether two kinds are in conflict is for typeOf to say.
func (k *kinds) serving(kind resource.AnyType) (resource.AnyType, form) {
	first, plain := kind, decoderOf(kind)
	if plain != nil {
		first = &forms{AnyType: kind, plain: plain, lazily: lazily(kind)}
	}
	// U-19: lazy and plain watches of a type share its subscription and its bytes.
	switch first := k.owned(first).Owner.(resource.AnyType).(type) {
	case *forms:
		switch first.plain {
		case plain:
			return first, first.lazily
		case kind:
			first.decodes.Store(true)
			return first, plainly
		}
	default:
		if first == plain {
			return first, lazily(kind)
		}
	}
	return kind, nil
}

// plainly is the form of a plain watch.
func plainly(value any, _ []byte) (any, error) { return resource.Decoded(value) }

// forms is the kind of a type URL that the program first watched lazily ([resource.LazyOf]). The
// client only walks over the bytes until the program wants the type decoded too; from then on
// the plain type decides what is refused, for all.
type forms struct {
	resource.AnyType // the lazy one
	plain            resource.AnyType
	lazily           form
	decodes          atomic.Bool // the program wants both
}

// Decode implements [resource.AnyType].
func (f *forms) Decode(src resource.Source, b []byte) (any, error) {
	if f.decodes.Load() {
		return f.plain.Decode(src, b)
	}
	return f.AnyType.Decode(src, b)
}

// NameGuessed is that of [resource.Type].
func (f *forms) NameGuessed() bool { return guessed(f.plain) }

// lazyKind is a [resource.Type]. Plain returns nils unless the type was made by [resource.LazyOf].
type lazyKind interface {
	Plain() (of resource.AnyType, holding func(value any, raw []byte) any)
}

// decoderOf is the type that decodes the values of a lazy one; nil of another.
func decoderOf(kind resource.AnyType) (plain resource.AnyType) {
	if l, ok := kind.(lazyKind); ok {
		plain, _ = l.Plain()
	}
	return plain
}

// lazily is the form of a lazy watch.
func lazily(kind resource.AnyType) form {
	_, holding := kind.(lazyKind).Plain()
	return func(value any, raw []byte) (any, error) { return holding(value, raw), nil }
}

// guessed says whether a kind's name field is a guess ([resource.Options]).
func guessed(kind resource.AnyType) bool {
	g, ok := kind.(interface{ NameGuessed() bool })
	return ok && g.NameGuessed()
}
