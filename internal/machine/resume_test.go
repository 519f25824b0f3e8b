package machine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/testutil/script"
)

// resumeRig is a rig with many long names on a server that limits requests.
type resumeRig struct {
	*rig
	names   []string // watched
	members []string // of a collection alone
}

const resumeNames = 1500

// newResumeRig holds version 1 of everything. Names are a kilobyte long.
func newResumeRig(t *testing.T, server Server, collection string) *resumeRig {
	r := &resumeRig{rig: newRig(t, Config{ResourceTimeout: 15 * time.Second}, server)}
	var events []Event
	for i := range resumeNames {
		name := long("name", i)
		r.names = append(r.names, name)
		events = append(events, Start{r.watch(name)})
	}
	if collection != "" {
		events = append(events, Start{r.watch(collection)})
		for i := range resumeNames {
			r.members = append(r.members, long(strings.TrimSuffix(collection, star)+"member", i))
		}
	}
	r.step(events...)
	r.up()
	r.answer("n1", "1", slices.Concat(r.names, r.members))
	r.down(0)
	return r
}

func long(prefix string, i int) string {
	return fmt.Sprintf("%s-%04d-%s", prefix, i, strings.Repeat("x", 1000))
}

// answer has the server send resources, and returns what was told.
func (r *resumeRig) answer(nonce, version string, names []string) (kinds []NoticeKind, told []string) {
	resp := &wire.Response{TypeURL: r.typ.URL, Version: version, Nonce: nonce}
	for _, name := range names {
		resp.Resources = append(resp.Resources, wire.Resource{
			Name: []byte(name), Version: []byte(version), TypeURL: []byte(r.typ.URL),
			Payload: []byte("value " + version), HasBody: true,
		})
	}
	all := []Effects{r.step(Received{r.ref, resp})}
	for _, task := range all[0].Decode {
		all = append(all, r.decode(task))
	}
	all = append(all, r.step(Delivered{r.ref}), r.step(Written{r.ref}))
	for _, fx := range all {
		k, n := news(fx)
		kinds, told = append(kinds, k...), append(told, n...)
	}
	return kinds, told
}

// down ends the stream and has the machine ask for the next.
func (r *resumeRig) down(code int32) Effects {
	fx := r.step(Down{Ref: r.ref, Kind: FaultStream, Err: errors.New("ended"), Code: code})
	r.step(Retry{r.ref})
	r.ref.Gen++
	return fx
}

// resume is the stream being up again: all that is sent until nothing is owed.
func (r *resumeRig) resume() (sent []*discoveryv3.DeltaDiscoveryRequest, sizes []int) {
	r.t.Helper()
	fx := r.step(Up{Ref: r.ref})
	for range 100 {
		for _, s := range fx.Send {
			msg := &discoveryv3.DeltaDiscoveryRequest{}
			if err := proto.Unmarshal(bytes.Join(s.Message, nil), msg); err != nil {
				r.t.Fatal(err)
			}
			sent, sizes = append(sent, msg), append(sizes, sizeOf(s.Message))
		}
		if len(fx.Send) > 0 {
			r.step(Written{r.ref})
		}
		r.now = r.now.Add(minPace)
		if fx = r.step(Tick{}); len(fx.Send) == 0 {
			return sent, sizes
		}
	}
	r.t.Fatal("there is no end to the requests")
	return nil, nil
}

// pass lets time go by and returns what was told.
func (r *resumeRig) pass(d time.Duration) (kinds []NoticeKind, told []string) {
	for end := r.now.Add(d); ; {
		at, ok := r.m.Deadline()
		if !ok || at.After(end) {
			r.now = end
			return kinds, told
		}
		r.now = at
		k, n := news(r.step(Tick{}))
		kinds, told = append(kinds, k...), append(told, n...)
	}
}

// subscribed lists the names of all requests; each may come once.
func subscribed(t *testing.T, sent []*discoveryv3.DeltaDiscoveryRequest) []string {
	t.Helper()
	var names []string
	for i, msg := range sent {
		if i > 0 && len(msg.InitialResourceVersions) > 0 {
			t.Errorf("message %d has initial versions", i)
		}
		names = append(names, msg.ResourceNamesSubscribe...)
	}
	slices.Sort(names)
	return names
}

// Without a limit everything is listed at once; when the server says that this was too much,
// what does not fit follows without its version, and counts as asked anew.
//
// spec: DELTA-1 DNE-1
func TestResumeNames(t *testing.T) {
	r := newResumeRig(t, Server{Delta: true}, "")
	sent, sizes := r.resume()
	if len(sent) != 1 || len(sent[0].InitialResourceVersions) != resumeNames || sizes[0] <= bigRequest {
		t.Fatalf("%d requests of %d bytes without a limit, %d versions", len(sent), sizes, len(sent[0].InitialResourceVersions))
	}
	if fx := r.down(codeResourceExhausted); len(fx.Log) != 1 {
		t.Errorf("the operator was told %d things, want 1", len(fx.Log))
	}
	budget := sizes[0] / 2
	sent, sizes = r.resume()
	if slices.Max(sizes) > budget {
		t.Errorf("requests of %d bytes, over the budget of %d", sizes, budget)
	}
	if got := subscribed(t, sent); !slices.Equal(got, r.names) {
		t.Errorf("%d names are subscribed to, want %d", len(got), resumeNames)
	}
	listed := sent[0].InitialResourceVersions
	for _, name := range sent[0].ResourceNamesSubscribe {
		if listed[name] != "1" {
			t.Errorf("%.12s is named at once without its version", name)
		}
	}
	later := subscribed(t, sent[1:])
	if len(listed)+len(later) != resumeNames || len(later) < 100 {
		t.Fatalf("%d versions are listed, %d names come later", len(listed), len(later))
	}
	// The server says half of the rest; silence about a name whose version it was told
	// means unchanged, about the others that there is none.
	half := later[:len(later)/2]
	if kinds, _ := r.answer("n2", "1", half); slices.Contains(kinds, NoticeUpdated) || slices.Contains(kinds, NoticeDoesNotExist) {
		t.Error("unchanged resources were told")
	}
	kinds, told := r.pass(20 * time.Second)
	slices.Sort(told)
	if !slices.Equal(told, later[len(half):]) || len(slices.Compact(kinds)) != 1 || kinds[0] != NoticeDoesNotExist {
		t.Errorf("%d were told, want the %d that were not answered", len(told), len(later)-len(half))
	}
}

// Where the timer is transient, what is not answered is kept.
//
// spec: DELTA-1 DNE-8
func TestResumeTransient(t *testing.T) {
	r := newResumeRig(t, Server{Delta: true, TransientTimeout: 30 * time.Second}, "")
	r.resume()
	r.down(codeResourceExhausted)
	sent, _ := r.resume()
	later := subscribed(t, sent[1:])
	r.answer("n2", "1", later[:1])
	kinds, told := r.pass(time.Minute)
	if len(told) != len(later)-1 || len(slices.Compact(kinds)) != 1 || kinds[0] != NoticeAmbient {
		t.Errorf("%d were told of an ambient error, want %d", len(told), len(later)-1)
	}
	if kinds, _ := r.answer("n3", "1", later); len(kinds) != len(later)-1 || kinds[0] != NoticeAmbient {
		t.Errorf("%d were told that all is well, want %d", len(kinds), len(later)-1)
	}
}

// The budget halves with each end until requests are no longer large. What the operator is
// told differs in its attributes alone.
//
// spec: DELTA-1
func TestResumeHalves(t *testing.T) {
	r := newResumeRig(t, Server{Delta: true}, "")
	var first []int
	told := map[string]int{}
	for range 5 {
		sent, sizes := r.resume()
		first = append(first, sizes[0])
		if got := subscribed(t, sent); !slices.Equal(got, r.names) {
			t.Fatalf("%d names are subscribed to, want %d", len(got), resumeNames)
		}
		for _, l := range r.down(codeResourceExhausted).Log {
			told[l.Text]++
			if !slices.Equal(l.Attrs, []any{"bytes", sizes[0], "limit", sizes[0] / 2}) {
				t.Errorf("%v is told of a request of %d bytes", l.Attrs, sizes[0])
			}
		}
	}
	if len(told) != 1 {
		t.Errorf("the operator was told %v", told)
	}
	for i := 1; i < len(first); i++ {
		within := first[i] <= first[i-1]/2 && first[i] > first[i-1]/2-5000
		if first[i-1] > bigRequest && !within || first[i-1] <= bigRequest && first[i] != first[i-1] {
			t.Errorf("first requests of %d bytes", first)
		}
	}
}

// Versions of members come before names. Members that the server was not told of are
// removed once it has spoken of those it has.
//
// spec: DELTA-1 DELTA-10
func TestResumeMembers(t *testing.T) {
	r := newResumeRig(t, Server{Delta: true, ExplicitWildcard: true}, star)
	r.resume()
	r.down(codeResourceExhausted)
	sent, _ := r.resume()
	for _, name := range r.members {
		if sent[0].InitialResourceVersions[name] != "1" {
			t.Fatalf("the version of %.12s is not listed", name)
		}
	}
	r.down(codeResourceExhausted)
	sent, _ = r.resume()
	listed := sent[0].InitialResourceVersions
	var unlisted []string
	for _, name := range r.members {
		if _, ok := listed[name]; !ok {
			unlisted = append(unlisted, name)
		}
	}
	if got := subscribed(t, sent); !slices.Equal(got, append([]string{star}, r.names...)) {
		t.Errorf("%d names are subscribed to, want all and the wildcard", len(got))
	}
	if len(unlisted) < 100 || len(listed)+len(unlisted) != resumeNames {
		t.Fatalf("%d members are listed, %d are not", len(listed), len(unlisted))
	}
	// A silent server says nothing of its members.
	if _, told := r.pass(14 * time.Second); len(told) != 0 {
		t.Errorf("%d were told of before any response", len(told))
	}
	r.answer("n2", "1", append(r.names, unlisted[:10]...))
	r.pass(10 * time.Second)
	r.answer("n3", "1", unlisted[10:20]) // still under way
	if _, told := r.pass(14 * time.Second); len(told) != 0 {
		t.Errorf("%d were removed while the first state was still coming", len(told))
	}
	r.answer("n4", "1", listed1(listed))
	kinds, told := r.pass(2 * time.Second)
	slices.Sort(told)
	if !slices.Equal(told, unlisted[20:]) || len(slices.Compact(kinds)) != 1 || kinds[0] != NoticeDoesNotExist {
		t.Errorf("%d were removed, want %d", len(told), len(unlisted)-20)
	}
	if at, ok := r.m.Deadline(); ok {
		t.Errorf("a deadline is left: %v", at)
	}
}

func listed1(versions map[string]string) []string {
	for name := range versions {
		return []string{name}
	}
	return nil
}

// State of the world restates all names in each request: the error says what is wrong, the
// operator is told once.
//
// spec: DELTA-1
func TestResumeSotW(t *testing.T) {
	r := newResumeRig(t, Server{}, "")
	for i, logs := range []int{1, 0} {
		r.step(Up{Ref: r.ref})
		fx := r.down(codeResourceExhausted)
		if len(fx.Log) != logs {
			t.Errorf("end %d: the operator was told %d things, want %d", i, len(fx.Log), logs)
		}
		if i > 0 {
			break // the same error again is told to nobody
		}
		ambient := func(n Notice) bool { return n.Kind == NoticeAmbient }
		if n := fx.Notify[slices.IndexFunc(fx.Notify, ambient)]; !strings.Contains(n.Fault.Err.Error(), "cannot split it: ended") {
			t.Errorf("told is %+v", n)
		}
	}
}

// Another end of a stream, or of one whose requests are small, sets no budget.
//
// spec: DELTA-1
func TestResumeOtherEnds(t *testing.T) {
	r := newResumeRig(t, Server{Delta: true}, "")
	r.resume()
	r.down(0)
	if sent, _ := r.resume(); len(sent) != 1 {
		t.Errorf("%d requests after another error, want 1", len(sent))
	}
	r.answer("n2", "2", r.names[:1])
	if at, ok := r.m.Deadline(); ok {
		t.Errorf("everything was listed, and there is a deadline: %v", at)
	}
	r.down(codeResourceExhausted)
	if sent, _ := r.resume(); len(sent) != 1 {
		t.Errorf("%d requests after an end that followed a response, want 1", len(sent))
	}
}

// Globs are named at once, since the versions of their members mean nothing without them;
// members that the server was not told of are gone if it does not speak of them.
//
// spec: DELTA-1 GLOB-2
func TestResumeGlob(t *testing.T) {
	const glob = "xdstp://a/t/p/*"
	r := newResumeRig(t, Server{Delta: true}, glob)
	r.resume()
	r.down(codeResourceExhausted)
	r.resume()
	r.down(codeResourceExhausted)
	sent, _ := r.resume()
	if got := sent[0].ResourceNamesSubscribe; len(got) == 0 || got[0] != glob {
		t.Errorf("the first request names %.80q, want the glob first", got)
	}
	listed := sent[0].InitialResourceVersions
	if len(listed) < 100 || len(listed) >= resumeNames {
		t.Fatalf("%d versions are listed, want some of the %d members", len(listed), resumeNames)
	}
	for name := range listed {
		if !strings.HasPrefix(name, "xdstp:") {
			t.Fatalf("the version of %.12s is listed before those of all members", name)
		}
	}
	if got := subscribed(t, sent); len(got) != resumeNames+1 {
		t.Errorf("%d names are subscribed to, want %d", len(got), resumeNames+1)
	}
	r.answer("n2", "1", r.names)
	r.answer("n3", "1", r.members[len(listed):len(listed)+5])
	kinds, told := r.pass(time.Minute)
	if len(told) != resumeNames-len(listed)-5 || len(slices.Compact(kinds)) != 1 || kinds[0] != NoticeDoesNotExist {
		t.Errorf("%d members are gone, want the %d that the server did not speak of", len(told), resumeNames-len(listed)-5)
	}
}

// Globs have their part in the budget, and are all named at once though they need more.
//
// spec: DELTA-1 GLOB-2
func TestResumeGlobs(t *testing.T) {
	r := newResumeRig(t, Server{Delta: true}, "")
	var globs []string
	for i := range resumeNames {
		globs = append(globs, long("xdstp://a/t/p", i)+"/*")
		r.step(Start{r.watch(globs[i])})
	}
	_, before := r.resume()
	r.down(codeResourceExhausted)
	sent, sizes := r.resume()
	if got := sent[0].ResourceNamesSubscribe; sizes[0] > before[0]/2 || len(got) <= resumeNames || !slices.Equal(got[:resumeNames], globs) {
		t.Errorf("the first request names %d in %d bytes, want the globs and as much as %d have room for", len(got), sizes[0], before[0]/2)
	}
	r.down(codeResourceExhausted)
	sent, _ = r.resume()
	if got := sent[0].ResourceNamesSubscribe; !slices.Equal(got, globs) {
		t.Errorf("the first request names %d, want the globs alone", len(got))
	}
}

// A name that has no room in the budget is asked for by itself.
//
// spec: DELTA-1
func TestResumeHugeName(t *testing.T) {
	r := &resumeRig{rig: newRig(t, Config{}, Server{Delta: true})}
	r.names = []string{"a", "b" + strings.Repeat("x", 2*bigRequest)}
	for _, name := range r.names {
		r.step(Start{r.watch(name)})
	}
	r.up()
	r.answer("n1", "1", r.names)
	for range 2 {
		r.down(codeResourceExhausted)
		r.resume()
	}
	r.down(codeResourceExhausted)
	sent, _ := r.resume()
	if got := subscribed(t, sent); len(sent) != 2 || !slices.Equal(got, r.names) {
		t.Errorf("%d requests for %d names, want one for each of %d", len(sent), len(got), len(r.names))
	}
}

// No type is to blame for the end of a stream whose first request was too large.
//
// spec: DELTA-1 S-3
func TestResumeBlamesNoType(t *testing.T) {
	for _, delta := range []bool{false, true} {
		r := newResumeRig(t, Server{Delta: delta}, "")
		r.step(Start{&Watch{Type: &Type{URL: script.Kinds()["bar"].TypeURL()}, Name: "b"}})
		both := func() {
			r.step(Up{Ref: r.ref})
			if fx := r.step(Written{r.ref}); len(fx.Send) != 1 {
				t.Errorf("delta %v: the other type is not asked for at once", delta)
			}
		}
		for _, code := range []int32{codeResourceExhausted, codeResourceExhausted, 0} {
			both()
			r.down(code)
		}
		both()
	}
}
