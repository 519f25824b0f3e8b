package client

import (
	"fmt"
	"sync"

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

// owned returns the machine's type of a kind's URL. If there is none yet it makes one, which the kind, or that of its
// forms, owns from then on.
func (k *kinds) owned(kind resource.AnyType) *machine.Type {
	k.mu.Lock()
	defer k.mu.Unlock()
	url := kind.TypeURL()
	t := k.types[url]
	if t == nil {
		t = &machine.Type{
			Owner: ownerOf(kind), URL: url, FullState: kind.FullState(), NameField: kind.NameField(), Guessed: guessed(kind),
			Guarded: len(k.config.Guards[url]) > 0, DeletionKeep: k.config.afterDeletion(url),
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
		return nil, fmt.Errorf("%w: a client has one value for each URL, so share one variable for all calls of resource.Proto, Custom, With or Map for it", ErrTypeConflict)
	}
	return t, nil
}

// of is the kind of a type URL that is watched.
func (k *kinds) of(typeURL string) resource.AnyType {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.types[typeURL].Owner.(resource.AnyType)
}

// guessed says whether a kind's name field is a guess ([resource.Options]).
func guessed(kind resource.AnyType) bool {
	g, ok := kind.(interface{ NameGuessed() bool })
	return ok && g.NameGuessed()
}
