package wire

import (
	"bytes"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// MaxAliases is how many aliases a resource may list. What lists more is refused.
const MaxAliases = 1024

// ErrAliases is the fault of a resource that lists more.
var ErrAliases = fmt.Errorf("the resource lists more than %d aliases", MaxAliases)

// Attributes are what a Resource says beside its value, version and time to live. A
// response's are parts of its frame.
type Attributes struct {
	Aliases    [][]byte // other names
	DoNotCache bool     // cache_control: for proxies
	Metadata   []byte   // an encoded envoy.config.core.v3.Metadata; nil if it says nothing
}

// Clone returns a copy that shares no bytes.
func (a *Attributes) Clone() *Attributes {
	c := &Attributes{DoNotCache: a.DoNotCache, Metadata: bytes.Clone(a.Metadata)}
	for _, name := range a.Aliases {
		c.Aliases = append(c.Aliases, bytes.Clone(name))
	}
	return c
}

// Same says whether two say the same, aliases aside, in the same bytes; nil says nothing.
func (a *Attributes) Same(b *Attributes) bool {
	if a == nil {
		a, b = b, a
	}
	switch {
	case a == nil:
		return true
	case b == nil:
		return !a.DoNotCache && len(a.Metadata) == 0
	}
	return a.DoNotCache == b.DoNotCache && bytes.Equal(a.Metadata, b.Metadata)
}

// Equal is Same with the aliases; nil is equal to nil alone.
func (a *Attributes) Equal(b *Attributes) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Same(b) && slices.EqualFunc(a.Aliases, b.Aliases, bytes.Equal)
}

// attributes makes room for what few entries say.
func (r *Resource) attributes() *Attributes {
	if r.Attributes == nil {
		r.Attributes = &Attributes{}
	}
	return r.Attributes
}

func (r *Resource) scanCacheControl(f Field) error {
	b, err := f.Bytes()
	if err != nil {
		return err
	}
	return Fields(b, func(num protowire.Number, f Field) error {
		if num != 1 {
			return nil
		}
		v, err := f.varint()
		if v != 0 || r.Attributes != nil {
			r.attributes().DoNotCache = v != 0
		}
		return err
	})
}

func (r *Resource) scanMetadata(f Field) error {
	b, err := f.Bytes()
	if len(b) > 0 {
		r.attributes().Metadata = b
	}
	return err
}
