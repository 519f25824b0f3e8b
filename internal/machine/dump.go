package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Resource is the state of one subscription or held resource.
type Resource struct {
	Server    int
	Scope     int
	TypeURL   string
	Name      string // of a collection "*" or the URL of a glob
	Authority string
	Status    Status
	Version   string // of the held value
	Raw       []byte // the held value; nil if none. Not to be changed
	// Attributes stand beside Raw; nil if none do. Not to be changed.
	Attributes *wire.Attributes
	Updated    time.Time
	Fault      *Fault
	Watched    bool   // by name; a collection's members may not be
	Reason     Reason // why there is no resource; of StatusDoesNotExist, also where the value is kept
	Refused    []byte // the payload that Fault refused; nil where it is not kept. Not to be changed
	Stale      bool   // the value is from the store, and no server has spoken of it since
	Locator    bool   // Raw is an xds.core.v3.ResourceLocator: the resource is there
	// RefusedLocator is as Locator, of Refused.
	RefusedLocator bool
	Whole          *Whole // the last value without flaws, if the held one has some; nil if there is none
}

// Key names a resource or a collection that a [Listing] found.
type Key struct {
	TypeURL, Name string
	Scope         int
	sub           *subscription
}

// Compare orders keys by type, name and scope.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.TypeURL, other.TypeURL), strings.Compare(k.Name, other.Name), cmp.Compare(k.Scope, other.Scope))
}

// Listing is a place in a list of the machine's resources. A new one has only Types. Between two pages the machine may step:
// what comes or goes meanwhile is listed or not, and a key may be listed twice.
type Listing struct {
	Types []string // URLs of the types to list; all types if there is none

	begun bool
	rest  [][]*subscription // of each type, that were not looked at; nil in the place of one that went
}

// Left is how many subscriptions of the type that is listed were not looked at yet.
func (at *Listing) Left() int {
	if len(at.rest) == 0 {
		return 0
	}
	return len(at.rest[0])
}

// List appends the keys of the names that are wanted, and of the members of collections that are wanted, in no order. It looks
// at no more than most subscriptions, and says whether these were the last. What is not wanted any more, and not yet
// unsubscribed, is left out.
func (m *Machine) List(at *Listing, keys []Key, most int) (_ []Key, done bool) {
	done = m.list(at, most, func(sub *subscription) {
		keys = append(keys, Key{sub.of.cache.typ.URL, sub.name, sub.of.source.Scope, sub})
	})
	return keys, done
}

// list calls each for those of no more than most subscriptions that a dump has, and says whether these were the last.
func (m *Machine) list(at *Listing, most int, each func(*subscription)) (done bool) {
	if !at.begun {
		at.begun = true
		for key, c := range m.caches {
			if len(at.Types) == 0 || slices.Contains(at.Types, key.url) {
				at.rest = append(at.rest, []*subscription{&c.star.subscription}, c.subs.list)
			}
		}
	}
	for ; len(at.rest) > 0; at.rest = at.rest[1:] {
		subs := at.rest[0]
		// What is dropped has the last one take its place: from the end none is missed.
		for ; len(subs) > 0 && most > 0; most-- {
			last := len(subs) - 1
			if sub := subs[last]; sub != nil && sub.onDump() {
				each(sub)
			}
			subs = subs[:last]
		}
		if at.rest[0] = subs; len(subs) > 0 {
			return false
		}
	}
	return true
}

// onDump says whether a dump has the subscription.
func (sub *subscription) onDump() bool {
	if sub.gone || sub.of.source == nil || sub.link() == nil {
		return false
	}
	// P-6: what nobody watches any more is left out, though the server was not told yet.
	return sub.wanted() || !sub.isCollection() && sub.of.wanted()
}

// Look appends what is known of listed resources; those that went meanwhile are left out.
func (m *Machine) Look(rs []Resource, keys []Key) []Resource {
	for _, k := range keys {
		if k.sub.onDump() {
			rs = append(rs, k.sub.dump())
		}
	}
	return rs
}

// Node is the encoded node that the newest stream was opened with, with the parameters that it was told
// of since; nil if there was none.
func (m *Machine) Node() []byte { return m.node }

func (sub *subscription) dump() Resource {
	r := Resource{
		Server: sub.server(), Scope: sub.of.source.Scope, TypeURL: sub.of.cache.typ.URL, Name: sub.name, Authority: sub.authority(),
		Status: sub.shown(), Version: sub.version, Raw: sub.raw, Fault: sub.fault(), Watched: sub.wanted(),
		Locator: sub.locator && sub.held(), Attributes: sub.attributes(), Stale: sub.stale(), Whole: sub.rare().whole,
	}
	if sub.held() {
		r.Updated = time.Unix(0, sub.updated)
	}
	switch {
	case sub.status == StatusDoesNotExist:
		r.Reason = sub.reason
	case sub.status == StatusNacked:
		it := sub.link().refusals.of(sub.fault())
		r.Refused, r.RefusedLocator = it.raw, it.locator
	case r.Status == StatusNacked:
		r.Refused = sub.raw
		r.Fault = &Fault{Kind: FaultRejected, Err: firstOf(sub.flaws()), At: r.Updated, Version: sub.version}
	}
	if r.Fault == nil {
		r.Fault = sub.of.source.withHigher(sub.link().trouble())
	}
	return r
}

// firstOf is the first of some flaws, which says how many more there are: all of them may be long.
func firstOf(flaws []error) error {
	if more := len(flaws) - 1; more > 0 {
		return fmt.Errorf("%w (and %d more)", flaws[0], more)
	}
	return flaws[0]
}

// shown is the status for dumps and gauges. Of a value with flaws it is NACKED, as its server heard.
func (sub *subscription) shown() Status {
	if sub.status == StatusAcked && len(sub.flaws()) > 0 {
		return StatusNacked
	}
	return sub.status
}

// Held returns the accepted value of a resource without watching it; ok says whether the
// resource is known at all.
func (m *Machine) Held(source int, typeURL, name string) (r Resource, ok bool) {
	c := m.caches[cacheKey{m.sources[source].Scope, typeURL}]
	if c == nil {
		return Resource{}, false
	}
	sub := c.subs.get(name)
	if sub == nil || sub.isCollection() {
		return Resource{}, false
	}
	return sub.dump(), true
}

// Known tells what is known of what a watch asks for; ok is false if the watch was not started, or was stopped.
func (m *Machine) Known(w *Watch) (r Resource, ok bool) {
	if w.sub == nil {
		return Resource{}, false
	}
	return w.sub.dump(), true
}

// Works says whether the server that answers for a source has spoken on the stream that it has
// now, or seems to have nothing to say there: what is held could be had again.
func (m *Machine) Works(source int, typeURL string) bool {
	src := m.working[m.sourceKeyOf(source, typeURL)]
	return src != nil && src.stream().works()
}
