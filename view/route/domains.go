package route

import (
	"strings"

	"github.com/tidwall/btree"
)

// Domains find the value of the domain that matches an authority best: first the exact one, then *suffix, then
// prefix*, then *; of a kind the longest. The case of ASCII letters does not count. NewDomains makes one. It is not
// safe for concurrent use while it changes.
type Domains[V any] struct {
	exact, suffixes, prefixes texts[V]
	ignorePort                bool
}

// texts are the domains of one kind without their asterisk.
type texts[V any] struct {
	values  *btree.Map[string, V]
	lengths *btree.Map[int, int] // how many have it
}

// degree of the trees: a change of a copy copies a few nodes of so many pairs.
const degree = 16

// NewDomains makes one without domains. IgnorePort says that Find takes no notice of a port
// (ignore_port_in_host_matching).
func NewDomains[V any](ignorePort bool) *Domains[V] {
	empty := func() texts[V] { return texts[V]{btree.NewMap[string, V](degree), btree.NewMap[int, int](degree)} }
	return &Domains[V]{empty(), empty(), empty(), ignorePort}
}

// Copy is one that changes independently. It shares what does not change.
func (d *Domains[V]) Copy() *Domains[V] {
	return &Domains[V]{d.exact.copy(), d.suffixes.copy(), d.prefixes.copy(), d.ignorePort}
}

func (t texts[V]) copy() texts[V] { return texts[V]{t.values.Copy(), t.lengths.Copy()} }

// IgnorePort says whether Find takes no notice of a port.
func (d *Domains[V]) IgnorePort() bool { return d.ignorePort }

// Change replaces the value of a domain by what change makes of it; has says whether there is one. It is false for a
// domain that is neither a name, *suffix, prefix* nor *, which matches nothing.
func (d *Domains[V]) Change(domain string, change func(old V, has bool) (now V, keep bool)) bool {
	kind, text := d.exact, lower(domain)
	switch before, after, wild := strings.Cut(text, "*"); {
	// VIEW-60: a malformed domain matches nothing, and the others stay good.
	case text == "", strings.Contains(after, "*"), before != "" && after != "":
		return false
	case wild && after != "":
		kind, text = d.suffixes, after
	case wild:
		kind, text = d.prefixes, before
	}
	old, had := kind.values.Get(text)
	now, has := change(old, had)
	if has {
		kind.values.Set(text, now)
	} else {
		kind.values.Delete(text)
	}
	if has != had {
		kind.count(len(text), has)
	}
	return true
}

func (t texts[V]) count(length int, more bool) {
	switch n, _ := t.lengths.Get(length); {
	case more:
		t.lengths.Set(length, n+1)
	case n > 1:
		t.lengths.Set(length, n-1)
	default:
		t.lengths.Delete(length)
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
func (d *Domains[V]) Find(authority string) (value V, match Match, ok bool) { // VIEW-60
	if d.ignorePort {
		authority = withoutPort(authority)
	}
	host := lower(authority)
	if v, ok := d.exact.values.Get(host); ok {
		return v, matchExact, true
	}
	if v, n, ok := d.suffixes.longest(host, func(n int) string { return host[len(host)-n:] }); ok {
		return v, matchSuffix + Match(n), true
	}
	if v, n, ok := d.prefixes.longest(host, func(n int) string { return host[:n] }); ok {
		return v, matchPrefix + Match(n), true
	}
	value, ok = d.prefixes.values.Get("")
	return value, matchAny, ok
}

// longest is the value of the longest text that is an affix of a host. An asterisk stands for at least one character.
func (t texts[V]) longest(host string, affix func(n int) string) (value V, length int, ok bool) {
	t.lengths.Descend(len(host)-1, func(n, _ int) bool {
		if n > 0 {
			value, ok = t.values.Get(affix(n))
			length = n
		}
		return !ok
	})
	return value, length, ok
}

// lower is s with ASCII letters in lower case.
func lower(s string) string {
	var all []byte // nil if s has none in upper case
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			if all == nil {
				all = []byte(s)
			}
			all[i] += 'a' - 'A'
		}
	}
	if all == nil {
		return s
	}
	return string(all)
}

// withoutPort cuts the port off an authority, as ignore_port_in_host_matching asks for. The colons of an
// IPv6 address are not one.
func withoutPort(authority string) string {
	colon := strings.LastIndexByte(authority, ':')
	if colon < 0 || strings.IndexByte(authority[colon:], ']') >= 0 {
		return authority
	}
	if strings.Count(authority, ":") > 1 && authority[0] != '[' {
		return authority
	}
	return authority[:colon]
}
