package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Codes of google.rpc.Status that have a meaning here.
const (
	codeInvalidArgument   = 3
	codeNotFound          = 5
	codePermissionDenied  = 7
	codeResourceExhausted = 8
)

// response is one that is being worked on: a [reader] finds what it speaks of and plans what that means, what is
// new is decoded, and then all of it is applied.
type response struct {
	// What the server sent, but for the names that [Machine.sift] drops from a long list of removed names; and the stream,
	// the type and the number that it had when it came.
	*wire.Response
	ref        Ref
	link       *link
	serial     serial
	unsifted   [][]byte // names of a long list of removed names that sift did not look at yet
	removedSum uint64   // of all names of such a list, for fingerprint

	reading
	work
	verdict
}

// stands says that the incarnation of the stream on which the response came is not over.
func (resp *response) stands() bool {
	s := resp.link.stream
	return s.state == up && s.ref == resp.ref
}

// serial is the number of a response among all of the machine; 0 is none. Numbers come round.
type serial uint32

// next is the number of the next response.
func (n serial) next() serial { return max(n+1, 1) }

// before says that a response came before another one. 0 is before each response, and nothing is before 0.
func (n serial) before(o serial) bool { return o != 0 && (n == 0 || int32(n-o) < 0) }

// reading is what a response speaks of, and what it means, worked out from what the server had been told when it
// came. A guard judges it, and the stream may end meanwhile.
type reading struct {
	collections   []*collection // that it speaks of, or of something in them
	completes     []*collection // of which it holds the first state
	statements    []statement   // beside the values that it holds
	mentioned     int           // of how many subscriptions it speaks
	aliasesBefore []aliasBefore // of subscriptions that it makes those of other aliases, or of none
	nameless      bool          // the name of an entry or of an error could not be read
}

// statement is what a response says of a subscription, other than a value: by a list of removed names or of errors, by an
// entry without a body, or by leaving the name out.
type statement struct {
	sub  *subscription
	kind statementKind
	err  *wire.ResourceError // of statesError
}

// statementKind is in the order in which statements are applied.
type statementKind uint8

const (
	statesNothing     statementKind = iota
	statesTwice                     // it is named more than once
	statesError                     // there is an error for it, and nothing else
	statesNotFound                  // it does not exist: an entry without a body, or the end of its collection
	statesRemoved                   // it does not exist: delta's list
	statesAbsent                    // it does not exist: a full state lacks it
	statesUnconfirmed               // a full state leaves out a value of another server
)

// hashOfEntry is the hash of a payload and the metadata beside it. A locator and a resource of the same bytes have
// different ones.
func hashOfEntry(payload []byte, locator bool, a *wire.Attributes) uint64 {
	hash := hashOf(payload)
	if a != nil && len(a.Metadata) > 0 {
		hash = (hash + hashOf(a.Metadata)) | 1
	}
	if locator {
		hash ^= 1 << 63
	}
	return hash
}

// entryVersion is the version of an entry: delta's own, else the response's.
func (resp *response) entryVersion(r *wire.Resource) string {
	if resp.link.stream.Delta {
		return string(r.Version)
	}
	return resp.Version
}

// constraints of an entry of the response; nil for none.
func (resp *response) constraints(i int) []byte {
	if n := resp.Resources[i].Variant; n > 0 {
		return resp.Constraints[n-1]
	}
	return nil
}

// renews says that an entry is to be taken as new although its bytes may be those that are held: the response says so, or
// an earlier one said so that a guard refused.
func (resp *response) renews(i int, sub *subscription) bool {
	return resp.Renewed[i] || sub.renewed()
}

// fullState says that a response of the type holds everything.
func (l *link) fullState() bool {
	// TYPE-2, FILE-3: responses of some types in state of the world, and all of a file.
	return !l.stream.Delta && (l.cache.typ.FullState || l.stream.AlwaysFull)
}

// tellsAll says whether names that the response lacks do not exist. What follows for each is [response.leftOut].
func (resp *response) tellsAll() bool {
	switch {
	// DELTA-4, SOTW-8, S-12, S-17: that the response lacks a name means nothing.
	case !resp.link.fullState(), resp.brokenFile():
		return false
	// SOTW-12: an entry without a name may be of any name that the response seems to lack.
	case resp.nameless:
		return false
	}
	// TTL-4: heartbeats alone end nothing, since resources without a TTL need none.
	return len(resp.Resources) == 0 || slices.ContainsFunc(resp.Resources, func(r wire.Resource) bool { return r.HasBody })
}

// brokenFile says that a response is that of a file which cannot be used: it holds errors alone. It says nothing of other
// names.
func (resp *response) brokenFile() bool {
	// FILE-4: what is held stays.
	return resp.link.stream.AlwaysFull && len(resp.Resources) == 0 && len(resp.Errors) > 0
}

// work is what is to be done of a response, and what was.
type work struct {
	ready    []planned // not applied yet
	tasks    []*Task   // that are not committed, in the order of the wire
	changed  bool      // something in it was new
	took     bool      // something of it is held, or is known to be absent, that was not before
	released bool      // its frame is
}

// planned is what an entry of a response that need not be decoded means for a subscription.
type planned struct {
	sub   *subscription
	index int
	fault *Fault // why it is invalid; nil if what is held came again, or a heartbeat of it
}

// aliasBefore is the resource of which a subscription's name was an alias before the response; of is nil for none.
type aliasBefore struct {
	sub *subscription
	of  *aliasTarget
}

// aliased is what an entry of a response says of aliases.
type aliased struct {
	subs []*subscription // of the resource's aliases that are watched
	err  error           // what is wrong with the aliases
}

var (
	errTwice    = errors.New("the response names the resource more than once")
	errNameless = errors.New("the resource has no name")
	errNoBody   = errors.New("the entry holds no resource")
	errGlob     = errors.New("the name is that of a collection")
	errNotError = errors.New("the status is OK")
)

// verdict is what becomes of a response: what is wrong with it.
type verdict struct {
	text           []byte // what is wrong, for the NACK: as much as that has room for; empty if nothing is
	valid, invalid int    // entries, as [Exchange] counts them
}

// nacked says that something is wrong with the response.
func (v *verdict) nacked() bool { return len(v.text) > 0 }

// full says that the NACK has no room for more: a million entries may be wrong.
func (v *verdict) full() bool { return len(v.text) > maxMessage }

// Lists of a response, as a NACK calls them.
const (
	resources      = "resource"
	resourceErrors = "resource error"
)

// refuse counts an entry of a list that is invalid, and says why.
func (v *verdict) refuse(list string, i int, name string, err error) {
	v.invalid++
	v.line(list, i, name, err)
}

// line adds what is wrong with an entry of a list, or with i < 0 with a name.
func (v *verdict) line(list string, i int, name string, err error) {
	if v.full() {
		return
	}
	if v.nacked() {
		v.text = append(v.text, "; "...)
	}
	if i >= 0 {
		v.text = fmt.Appendf(v.text, "%s index %d: ", list, i)
	}
	if name != "" {
		v.text = append(append(v.text, name...), ": "...)
	}
	v.text = fmt.Append(v.text, err)
}

// count counts an entry: wrong is why it is refused, its flaws, or nothing.
func (v *verdict) count(i int, sub *subscription, wrong ...error) {
	if len(wrong) == 0 {
		v.valid++
		return
	}
	v.invalid++
	for _, err := range wrong {
		v.line(resources, i, sub.name, err)
	}
}

// maxMessage is how long the text of a NACK may be; headers of 8 KiB are a common limit,
// and some servers put it there.
const (
	maxMessage = 4096
	truncated  = "...(truncated)"
)

// message is the text of a NACK: everything that is wrong, cut where it gets too long.
func (v *verdict) message() string {
	return cut(string(v.text), maxMessage) // ACK-5: the text is bounded.
}

// cut makes a text that is valid and of at most so many bytes.
func cut(text string, most int) string {
	if text = strings.ToValidUTF8(text, "\uFFFD"); len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(truncated)], "") + truncated
}

// Bounds of the refused payloads that are kept of a type on a stream, for dumps.
const (
	maxRefusals = 16      // the newest
	maxRefused  = 1 << 16 // bytes of each; a longer one is not kept
)

// refusals are the newest payloads that were refused. Each is found by its fault, for as long as a subscription has that.
type refusals []refusal

type refusal struct {
	fault   *Fault
	raw     []byte
	locator bool
}

func (r *refusals) add(f *Fault, payload []byte, locator bool) {
	if len(payload) > maxRefused {
		return
	}
	if len(*r) == maxRefusals {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, refusal{f, slices.Clone(payload), locator})
}

// of finds what a fault refused; zero if it is not kept.
func (r refusals) of(f *Fault) refusal {
	for _, it := range r {
		if it.fault == f {
			return it
		}
	}
	return refusal{}
}
