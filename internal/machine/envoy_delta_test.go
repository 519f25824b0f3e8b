package machine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/testutil/script"
)

// envoyDelta is what Envoy's state of a delta subscription knows and would request, by what its tests expect of it. A
// resource that is only waited for has no version.
type envoyDelta struct {
	requested, members, ambiguous map[string]string
	subscribe, unsubscribe        map[string]bool
	asked                         bool // on this stream
}

func newEnvoyDelta() *envoyDelta {
	return &envoyDelta{map[string]string{}, map[string]string{}, map[string]string{}, map[string]bool{}, map[string]bool{}, false}
}

func (e *envoyDelta) want(name string) {
	if _, has := e.requested[name]; !has {
		e.requested[name] = e.members[name] + e.ambiguous[name] // at most one has it
		delete(e.members, name)
		delete(e.ambiguous, name)
	}
	delete(e.unsubscribe, name)
	e.subscribe[name] = true
}

func (e *envoyDelta) leave(name string) {
	version := e.requested[name]
	delete(e.requested, name)
	switch _, everything := e.requested[star]; {
	case name == star:
		clear(e.members)
		clear(e.ambiguous)
	case everything && version != "":
		e.ambiguous[name] = version
	}
	delete(e.subscribe, name)
	e.unsubscribe[name] = true
}

func (e *envoyDelta) give(name, version string) {
	if _, has := e.requested[name]; has {
		e.requested[name] = version
	} else if _, everything := e.requested[star]; everything {
		e.members[name] = version
		delete(e.ambiguous, name)
	}
}

func (e *envoyDelta) remove(name string) {
	if _, has := e.requested[name]; has {
		e.requested[name] = ""
	}
	delete(e.members, name)
	delete(e.ambiguous, name)
}

// request is the next one: names that are subscribed and unsubscribed, and the versions in the first of a stream.
func (e *envoyDelta) request() (r deltaRequest) {
	r = newDeltaRequest()
	if !e.asked && len(e.requested) > 0 {
		for _, of := range []map[string]string{e.requested, e.members, e.ambiguous} {
			for name, version := range of {
				if version != "" {
					r.versions[name] = version
				}
			}
		}
		for name := range e.requested {
			r.subscribe[name] = true
		}
		e.asked = true
	} else if e.asked {
		r.subscribe, r.unsubscribe = maps.Clone(e.subscribe), maps.Clone(e.unsubscribe)
	}
	clear(e.subscribe)
	clear(e.unsubscribe)
	return r
}

type deltaRequest struct {
	subscribe, unsubscribe map[string]bool
	versions               map[string]string
	nonces                 []string
}

func newDeltaRequest() deltaRequest {
	return deltaRequest{map[string]bool{}, map[string]bool{}, map[string]string{}, nil}
}

var deltaLine = regexp.MustCompile(`^-> \d+ cds sub=\[(.*?)\](?: unsub=\[(.*?)\])?(?: init=\{(.*?)\})?(?:.* nonce="(.*?)")?`)

// requestsOf sums up the requests of a type in what a driver tells. A name that is unsubscribed just to be subscribed again,
// since the server sent it unasked, counts as subscribed.
func requestsOf(lines []string) deltaRequest {
	r := newDeltaRequest()
	for _, line := range lines {
		m := deltaLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, name := range strings.Fields(m[2]) {
			r.unsubscribe[name] = true
		}
		for _, name := range strings.Fields(m[1]) {
			r.subscribe[name] = true
			delete(r.unsubscribe, name)
		}
		for _, entry := range strings.Fields(m[3]) {
			name, version, _ := strings.Cut(entry, ":")
			r.versions[name] = version
		}
		if m[4] != "" {
			r.nonces = append(r.nonces, m[4])
		}
	}
	return r
}

// TestDeltaRequestsOfEnvoy compares what is requested in delta, of names beside a wildcard that is spelled out, with what
// Envoy would request: after random watches, responses and ends of streams. Left out is what differs on purpose: a refused
// resource does not hold back the others of its response; and what is given up and wanted at one moment keeps its value, as a
// name does when the wildcard begins or ends.
//
// spec: DELTA-1 DELTA-2 DELTA-5 DELTA-6 DELTA-7 DELTA-9 DELTA-10 DELTA-13 WILD-6 WILD-7 WILD-8
func TestDeltaRequestsOfEnvoy(t *testing.T) {
	n := 400
	if testing.Short() {
		n /= 3
	}
	for seed := range n {
		compareWithEnvoy(t, uint64(seed))
	}
}

func compareWithEnvoy(t *testing.T, seed uint64) {
	s, err := script.Parse("envoy", []byte("# Requests as Envoy's.\n# spec: DELTA-1\n# server: delta\n\nwatch k eds k\n----\n"))
	if err != nil {
		t.Fatal(err)
	}
	var (
		r        = rand.New(rand.NewPCG(seed, 0))
		d        = newDriver(t, s)
		e        = newEnvoyDelta()
		watched  = map[string]bool{}
		versions = map[string]int{}
		nonces   int
		history  []string
		down     bool
	)
	does := func(command string, want deltaRequest) {
		t.Helper()
		history = append(history, command)
		if got := requestsOf(d.run(command)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: got %v, Envoy would request %v, after\n%s", seed, got, want, strings.Join(history, "\n"))
		}
	}
	respond := func(items ...string) {
		nonces++
		ack := newDeltaRequest()
		ack.nonces = []string{fmt.Sprintf("n%d", nonces)}
		does(fmt.Sprintf("recv cds n%d %s", nonces, strings.Join(items, " ")), ack)
	}
	does("watch k eds k", newDeltaRequest())
	does("recv eds k k=1", newDeltaRequest())
	for range 30 {
		switch x := r.IntN(20); {
		case down:
			e.asked, down = false, false
			does("retry", e.request())
			does("recv eds k k=1", newDeltaRequest())
			if e.asked { // a server that never answers for a type is suspected
				respond()
			}
		case x < 9:
			var commands []string
			names := []string{"a", "b", "c", star}
			r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			names = names[:1+r.IntN(3)]
			left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !watched[name] })
			for _, name := range names {
				if !watched[name] {
					e.want(name)
					commands = append(commands, "watch "+name+" cds "+strings.ReplaceAll(name, star, "**"))
					watched[name] = true
				}
			}
			if slices.Contains(left, star) || !slices.Contains(names, star) {
				for _, name := range left {
					e.leave(name)
					commands = append(commands, "unwatch "+name)
					watched[name] = false
				}
			}
			if want := e.request(); len(commands) > 0 {
				does(strings.Join(commands, "; "), want)
			}
		case x < 18 && e.asked:
			var items []string
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				switch y := r.IntN(20); {
				case y < 7:
					versions[name] += r.IntN(2)
					version := fmt.Sprintf("v%d", versions[name])
					e.give(name, version)
					items = append(items, name+"@"+version+"="+version)
				case y < 8:
					items = append(items, name+"@refused=bad:no")
				case y < 11:
					e.remove(name)
					items = append(items, "-"+name)
				}
			}
			respond(items...)
		case x >= 18:
			does("end", newDeltaRequest())
			down = true
		}
	}
}
