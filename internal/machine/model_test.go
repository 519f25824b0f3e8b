package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// word is what a server said of a resource that counts, by a dumb reading of the rules.
type word struct {
	held    bool
	value   string
	version string
	fault   bool // refused, or the server sent an error for it, or did not answer
	refused bool // not that
	stated  bool // the server's error, and none of ours
	absent  bool
	unsure  bool // nobody wanted it for a while: it may or may not be known any more
	epoch   int  // grows whenever nobody wants it

	ttl    time.Duration // of what is held; 0 for none
	given  time.Time     // when the response came that gave it
	called               // by the server
	lapsed bool          // it ran out, and the server has not spoken of the resource since
}

// model is one type's cache as a map.
type model struct {
	typ      *Type
	words    map[string]*word
	live     map[string]int // watches by name
	globs    map[string]int // watches of globs
	wild     int            // watches of the wildcard
	everWild bool
	byName   bool // the first of them wants it by its name
}

func newModel(t *Type) *model {
	return &model{typ: t, words: map[string]*word{}, live: map[string]int{}, globs: map[string]int{}}
}

func (md *model) word(name string) *word {
	if md.words[name] == nil {
		md.words[name] = &word{}
	}
	return md.words[name]
}

// doubt marks what nobody wants now.
func (md *model) doubt(name string) {
	w := md.word(name)
	w.unsure = true
	w.epoch++
	w.blur()
}

// covered says whether anybody wants a resource.
func (md *model) covered(name string) bool {
	return md.live[name] > 0 || md.wild > 0 || md.globs[globOver(name)] > 0 || md.globs[name] > 0
}

func (md *model) start(w *Watch) {
	switch {
	case w.Name == star:
		md.everWild = true
		if md.wild++; md.wild == 1 {
			md.byName = w.Explicit
		}
		return
	case w.Wildcard:
		if md.globs[w.Name]++; md.globs[w.Name] == 1 {
			for name, word := range md.words {
				if globOver(name) == w.Name {
					word.epoch++
					word.unsure = word.unsure || word.absent || word.fault || !md.covered(name)
				}
			}
		}
		return
	}
	if word := md.word(w.Name); md.live[w.Name] == 0 {
		word.epoch++ // the response under way may have come before it
		if word.absent || word.fault {
			word.unsure = true // a wildcard forgets members that it does not hold
		}
	}
	md.live[w.Name]++
}

// stop ends a watch; asked says that the server is still being asked for everything.
func (md *model) stop(w *Watch, asked bool) {
	if w.Name == star {
		md.wild--
	} else if w.Wildcard {
		if md.globs[w.Name]--; md.globs[w.Name] == 0 {
			for name := range md.words {
				if !md.covered(name) {
					md.doubt(name)
				}
			}
		}
	} else if md.live[w.Name]--; md.live[w.Name] == 0 {
		delete(md.live, w.Name)
		if _, perhaps := md.word(w.Name).alias(); perhaps {
			md.doubt(w.Name) // which no collection has
		}
	}
	if md.wild == 0 && !asked {
		md.word(w.Name)
		md.left()
	}
}

// owed: the server owes everything.
func (md *model) owed() {
	for _, word := range md.words {
		word.lapsed = false
	}
}

// left doubts what only the wildcard held.
func (md *model) left() {
	for name := range md.words {
		if md.live[name] == 0 && md.globs[globOver(name)] == 0 {
			md.doubt(name)
		}
	}
}

// entryKind is what an entry of a simulated response is.
type entryKind int

const (
	entryValue entryKind = iota
	entryBad             // the decoder refuses it
	entryWrongType
	entryBodiless
)

// simEntry is one entry of a simulated response.
type simEntry struct {
	kind         entryKind
	locator      bool   // in place of the resource
	outer, inner string // names of the wrapper and in the message
	value        string
	noise        byte // differs in the bytes and not in the value
	aliases      []string
	alias        string // of them, that the entry speaks of; "" for its own name
	version      string
	ttl          time.Duration
}

// name is what can be known of the entry's name.
func (en simEntry) name(t *Type) string {
	if en.alias != "" {
		return en.alias
	}
	if en.outer == "" && t.NameField != 0 && (en.kind == entryValue || en.kind == entryBad) {
		return en.inner
	}
	return en.outer
}

func (en simEntry) body(t *Type) *anypb.Any {
	if en.kind == entryBodiless {
		return nil
	}
	a := &anypb.Any{TypeUrl: t.URL, Value: encodeValue(en.inner, en.value, en.noise)}
	switch {
	case en.kind == entryWrongType:
		a.TypeUrl += "Other"
	case en.locator:
		a.TypeUrl = locatorURL
	}
	return a
}

// attributes are what stands beside the value.
func (en simEntry) attributes(delta bool) *wire.Attributes {
	if en.version != "2" || !delta && en.outer == "" {
		return nil
	}
	return &wire.Attributes{DoNotCache: true}
}

// lives is how long the resource does without a heartbeat; 0 for ever.
func (en simEntry) lives(delta bool) time.Duration {
	if !delta && en.outer == "" {
		return 0
	}
	return en.ttl
}

const doNotCache = ", not to be cached"

// marked is a value with what stands beside it.
func marked(value string, a *wire.Attributes) string {
	if a != nil && a.DoNotCache {
		value += doNotCache
	}
	return value
}

// means is the value that the entry is decoded to.
func (en simEntry) means() string { return meaning(en.value, en.locator) }

// meaning tells a locator from a resource, which may be of the same bytes.
func meaning(value string, locator bool) string {
	if locator {
		return "@" + value
	}
	return value
}

// wrapper is the entry as a Resource.
func (en simEntry) wrapper(t *Type, delta bool) *discoveryv3.Resource {
	r := &discoveryv3.Resource{Name: en.outer, Resource: en.body(t)}
	if delta {
		r.Version = en.version
	}
	if a := en.attributes(delta); a != nil {
		r.CacheControl = &discoveryv3.Resource_CacheControl{DoNotCache: a.DoNotCache}
	}
	r.Aliases = en.aliases
	if ttl := en.lives(delta); ttl != 0 {
		r.Ttl = durationpb.New(ttl)
	}
	return r
}

// flawed says that a value is used although parts of it cannot be.
func flawed(value string) bool { return strings.HasPrefix(value, "flawed") }

func encodeValue(name, value string, noise byte) []byte {
	var b []byte
	for i, s := range []string{name, value, string('a' + rune(noise%2))} {
		b = protowire.AppendTag(b, protowire.Number(i+1), protowire.BytesType)
		b = protowire.AppendString(b, s)
	}
	return b
}

func decodeValue(b []byte) string {
	v, _, err := wire.StringField(b, 2)
	if err != nil {
		return "broken"
	}
	return string(v)
}

type simError struct {
	name string
	code int32
}

// simResponse is one response of the simulated server.
type simResponse struct {
	ref            Ref
	at             time.Time // when it came
	wild           bool      // a wildcard was watched then
	md             *model
	version, nonce string
	entries        []simEntry
	removed        []string
	errors         []simError
	params         bool // it has variants for others
	aliased        bool // names may be aliases

	listed  map[string]string // initial versions of the request that it is the first to answer
	ignored bool
	blurred bool         // taken at a time that the model does not know exactly
	maybe   []string     // aliases that it may speak of
	said    *simResponse // as it was sent, without what it says by aliases
	torn    bool         // names of it moved to another server meanwhile
	gone    bool         // its stream was given up meanwhile: nothing of it is kept
	void    bool         // its stream was over when it was judged: nothing of it is taken
	refusal error        // of a guard: nothing of it is taken
	ending  []string     // names that it would have removed, by its proposal
	bad     verdict
	applies map[string]int  // mentioned names that are wanted for certain → epoch
	epochs  map[string]int  // of all names
	watched map[string]bool // mentioned names that were then, by themselves
	beside  map[string]bool // names that were not asked for then, nor was everything
}

// verdict is what an answer has to be.
type verdict int

const (
	good verdict = iota
	unknown
	bad
)

func (r *simResponse) frame(t testing.TB, delta bool) *wire.Response {
	var m proto.Message
	var errs []*discoveryv3.ResourceError
	for _, e := range r.errors {
		errs = append(errs, &discoveryv3.ResourceError{
			ResourceName: &discoveryv3.ResourceName{Name: e.name}, ErrorDetail: &status.Status{Code: e.code, Message: "no"},
		})
	}
	scan := wire.ScanSotW
	if delta {
		scan = wire.ScanDelta
		d := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.md.typ.URL, Nonce: r.nonce, RemovedResources: r.removed, ResourceErrors: errs}
		for _, en := range r.entries {
			d.Resources = append(d.Resources, r.vary(en.wrapper(r.md.typ, true))...)
		}
		r.varyRemoved(d)
		m = d
	} else {
		d := &discoveryv3.DiscoveryResponse{TypeUrl: r.md.typ.URL, Nonce: r.nonce, VersionInfo: r.version, ResourceErrors: errs}
		for _, en := range r.entries {
			a := en.body(r.md.typ)
			if en.outer == "" && a != nil {
				d.Resources = append(d.Resources, a)
				continue
			}
			for _, v := range r.vary(en.wrapper(r.md.typ, false)) {
				a, err := anypb.New(v)
				if err != nil {
					t.Fatal(err)
				}
				d.Resources = append(d.Resources, a)
			}
		}
		m = d
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := scan(b)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// mentions counts how often a response names a resource, errors apart but those of what it
// says is removed.
func (r *simResponse) mentions() map[string]int {
	n := map[string]int{}
	for _, en := range r.entries {
		n[en.name(r.md.typ)]++
	}
	for _, name := range r.removed {
		n[name]++
		if slices.ContainsFunc(r.errors, func(e simError) bool { return e.name == name && e.code != 0 && e.code != codeNotFound }) {
			n[name]++ // not found says the same
		}
	}
	return n
}

// take notes what is wanted of a source when the machine takes the response.
func (r *simResponse) take(w *world, src int) {
	md := r.md
	s := w.stream(r.ref.Stream)
	pic := s.pics[md.typ.URL]
	consider := func(name string) {
		if md.live[name] > 0 {
			r.watched[name] = true
		}
		switch {
		case name != "" && (sourceOf(name) != src || !w.active(s, md.typ.URL, name)):
		case isGlobURL(name) && md.globs[name] == 0: // its end may count until it is taken back
			md.doubt(name)
			for member := range md.words {
				if globOver(member) == name && !r.names(member) {
					md.doubt(member)
				}
			}
		case pic.wild, md.live[name] > 0, md.globs[name] > 0, pic.names[globOver(name)] && md.globs[globOver(name)] > 0:
			r.applies[name] = md.word(name).epoch
		default:
			md.doubt(name)
		}
	}
	for name := range r.mentions() {
		consider(name)
	}
	for _, e := range r.errors {
		consider(e.name)
	}
	for name, word := range md.words {
		if sourceOf(name) == src && w.active(s, md.typ.URL, name) {
			r.epochs[name] = word.epoch
			r.beside[name] = !pic.wild && !pic.names[name]
		}
	}
	for _, name := range r.maybe {
		if sourceOf(name) == src {
			md.doubt(name)
		}
	}
}

// judge says how the response has to be answered. It depends on what is held.
func (r *simResponse) judge(delta bool) verdict {
	v := good
	if len(r.maybe) > 0 {
		v = unknown
	}
	worse := func(name string) {
		if _, ok := r.applies[name]; ok {
			v = bad
		} else if v == good {
			v = unknown
		}
	}
	mentions := r.mentions()
	for _, en := range r.entries {
		name := en.name(r.md.typ)
		switch {
		case name == "":
			v = bad
		case mentions[name] > 1, en.kind == entryBad, en.kind == entryWrongType, isGlobURL(name), en.kind == entryValue && flawed(en.value):
			worse(name)
		case en.kind == entryBodiless && !delta:
			w := r.md.word(name)
			if _, applies := r.applies[name]; w.unsure || !applies { // what is held may be another server's
				v = max(v, unknown)
			} else if !r.heartbeat(en, w, delta) {
				worse(name)
			}
		}
	}
	for _, name := range r.removed {
		switch {
		case mentions[name] > 1 && r.watched[name]:
			worse(name)
		case mentions[name] > 1:
			v = max(v, unknown) // a member that may never have been known
		}
	}
	for _, e := range r.errors {
		switch {
		case e.name == "" || e.code == 0:
			v = bad
		case mentions[e.name] > 0 || failures(r.errors, e.name) < 2:
		case r.watched[e.name]:
			worse(e.name)
		default:
			v = max(v, unknown) // a member that may never have been known
		}
	}
	return v
}

// heartbeat says whether a bodiless entry restates what is held.
func (r *simResponse) heartbeat(en simEntry, w *word, delta bool) bool {
	version := r.version
	if delta {
		version = en.version
	}
	return w.held && version != "" && version == w.version
}
