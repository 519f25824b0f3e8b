package testutil

import "github.com/xdswatch/xdswatch/internal/wire"

const (
	// responseRoom is what a response needs beside its elements: type, version and nonce.
	responseRoom = 512
	// elementRoom is what an element needs beside its own bytes: tags, lengths, and the
	// type URL of a wrapper.
	elementRoom = len(wire.WrapperURL) + 32
)

// filling counts what is in a response, so that it stays below its size.
type filling struct {
	left  int // bytes
	items map[*item]struct{}
	names int
}

func newFilling(limit int) *filling {
	return &filling{left: limit - responseRoom, items: make(map[*item]struct{})}
}

// has says whether an item is in the response.
func (f *filling) has(it *item) bool {
	_, ok := f.items[it]
	return ok
}

func (f *filling) empty() bool { return len(f.items) == 0 && f.names == 0 }

// add counts an item, which may be nil, and a removed name, which may be empty; false if
// they do not fit. What comes first always fits.
func (f *filling) add(it *item, name string) bool {
	cost := 0
	if it != nil {
		cost += elementRoom + it.size
	}
	if name != "" {
		cost += elementRoom + len(name)
	}
	if cost > f.left && !f.empty() {
		return false
	}
	f.left -= cost
	if it != nil {
		f.items[it] = struct{}{}
	}
	if name != "" {
		f.names++
	}
	return true
}
