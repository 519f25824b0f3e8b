// Package domains finds virtual hosts by their domains, as Envoy does.
package domains

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// Table finds the value of the domain that matches an authority best: first the exact one, then *suffix, then
// prefix*, then *; of a kind the longest. The case of ASCII letters does not count. It is not safe for concurrent use
// while it changes or is copied.
type Table[V any] struct {
	exact, suffixes, prefixes texts[V]
	ignorePort                bool
}

// texts are the domains of one kind without their asterisk.
type texts[V any] struct {
	values  map[string]V          // until the first copy
	tree    *btree.Map[string, V] // nil until then
	lengths []length              // of those with an asterisk, the longest first
}

// length is one that some texts have.
type length struct{ of, texts int }

// degree of the trees: a change of a copy copies a few nodes of so many pairs.
const degree = 16

// New makes a table without domains. ignorePort says that Find takes no notice of a port
// (ignore_port_in_host_matching).
func New[V any](ignorePort bool) *Table[V] {
	empty := func() texts[V] { return texts[V]{values: map[string]V{}} }
	return &Table[V]{empty(), empty(), empty(), ignorePort}
}

// Copy is one that changes independently. It shares what does not change: the first copy puts all into trees, in which
// Find takes a few times longer.
func (t *Table[V]) Copy() *Table[V] {
	return &Table[V]{t.exact.copy(), t.suffixes.copy(), t.prefixes.copy(), t.ignorePort}
}

func (t *texts[V]) copy() texts[V] {
	if t.tree == nil {
		t.tree = btree.NewMap[string, V](degree)
		for text, v := range t.values {
			t.tree.Set(text, v)
		}
		t.values = nil
	}
	return texts[V]{tree: t.tree.Copy(), lengths: slices.Clone(t.lengths)}
}

func (t *texts[V]) get(text string) (v V, ok bool) {
	if t.tree != nil {
		return t.tree.Get(text)
	}
	v, ok = t.values[text]
	return v, ok
}

func (t *texts[V]) set(text string, v V) {
	if t.tree != nil {
		t.tree.Set(text, v)
	} else {
		t.values[text] = v
	}
}

func (t *texts[V]) delete(text string) {
	if t.tree != nil {
		t.tree.Delete(text)
	} else {
		delete(t.values, text)
	}
}

// IgnorePort says whether Find takes no notice of a port.
func (t *Table[V]) IgnorePort() bool { return t.ignorePort }

// Change replaces the value of a domain by what change makes of it; has says whether there is one. It is false for a
// domain that is neither a name, *suffix, prefix* nor *, which matches nothing.
func (t *Table[V]) Change(domain string, change func(old V, has bool) (now V, keep bool)) bool {
	kind, text := &t.exact, Lower(domain)
	switch before, after, wild := strings.Cut(text, "*"); {
	// VIEW-60: a malformed domain matches nothing, and the others stay good.
	case text == "", strings.Contains(after, "*"), before != "" && after != "":
		return false
	case wild && after != "":
		kind, text = &t.suffixes, after
	case wild:
		kind, text = &t.prefixes, before
	}
	old, had := kind.get(text)
	now, has := change(old, had)
	if has {
		kind.set(text, now)
	} else {
		kind.delete(text)
	}
	if has != had && kind != &t.exact && text != "" {
		kind.count(len(text), has)
	}
	return true
}

func (t *texts[V]) count(n int, more bool) {
	i, known := slices.BinarySearchFunc(t.lengths, n, func(l length, n int) int { return cmp.Compare(n, l.of) })
	switch {
	case more && known:
		t.lengths[i].texts++
	case more:
		t.lengths = slices.Insert(t.lengths, i, length{n, 1})
	case t.lengths[i].texts > 1:
		t.lengths[i].texts--
	default:
		t.lengths = slices.Delete(t.lengths, i, i+1)
	}
}

// Match says how well a domain matches an authority: the greater, the better.
type Match int64

// Kinds of domains: each is more than the longest of those before it.
const (
	matchAny    Match = 0
	matchPrefix Match = 1 << 40
	matchSuffix Match = 2 << 40
	matchExact  Match = 3 << 40
)

// Find finds the value of an authority; ok is false if no domain matches.
func (t *Table[V]) Find(authority string) (value V, match Match, ok bool) { // VIEW-60
	if t.ignorePort {
		authority = WithoutPort(authority)
	}
	host := authority
	if hasCapital(host) { // as Lower, of short ones on the stack
		var space [255]byte
		host = string(appendLower(space[:0], host))
	}
	if v, ok := t.exact.get(host); ok {
		return v, matchExact, true
	}
	// An asterisk stands for at least one character.
	for _, l := range t.suffixes.lengths {
		if l.of < len(host) {
			if v, ok := t.suffixes.get(host[len(host)-l.of:]); ok {
				return v, matchSuffix + Match(l.of), true
			}
		}
	}
	for _, l := range t.prefixes.lengths {
		if l.of < len(host) {
			if v, ok := t.prefixes.get(host[:l.of]); ok {
				return v, matchPrefix + Match(l.of), true
			}
		}
	}
	value, ok = t.prefixes.get("")
	return value, matchAny, ok
}

// Lower is s with ASCII letters in lower case.
func Lower(s string) string {
	if hasCapital(s) {
		return string(appendLower(nil, s))
	}
	return s
}

func hasCapital(s string) bool {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return true
		}
	}
	return false
}

func appendLower(to []byte, s string) []byte {
	for i := range len(s) {
		to = append(to, lower(s[i]))
	}
	return to
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// EqualFold says whether two texts are equal but for the case of ASCII letters.
func EqualFold(s, t string) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range len(s) {
		if lower(s[i]) != lower(t[i]) {
			return false
		}
	}
	return true
}

// WithoutPort cuts the port off an authority, as ignore_port_in_host_matching asks for. The colons of an
// IPv6 address are not one.
func WithoutPort(authority string) string {
	colon := strings.LastIndexByte(authority, ':')
	if colon < 0 || strings.IndexByte(authority[colon:], ']') >= 0 {
		return authority
	}
	if strings.Count(authority, ":") > 1 && authority[0] != '[' {
		return authority
	}
	return authority[:colon]
}
