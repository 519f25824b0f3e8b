package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// What is gone of two sources at one moment is forgotten under the source of each.
//
// spec: LKG-2 LKG-5
func TestKeepOfTwoSources(t *testing.T) {
	r := &rig{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), typ: &Type{URL: scaleType.URL, NameField: scaleType.NameField, Stored: true}}
	answers := func(server int, authority string) bool { return (server == 1) == (authority == "b") }
	r.m = newMachine(
		Config{}, []Server{{Delta: true}, {Delta: true}},
		Source{Servers: []int{0}, Answers: answers, Stored: true}, Source{Servers: []int{1}, Answers: answers, Stored: true},
	)
	names := []string{"a", "xdstp://b/test.Bar/b"}
	refs := []Ref{{0, 1}, {1, 1}}
	responses := func(fill func(*wire.Response, string)) (events []Event) {
		for i, name := range names {
			resp := &wire.Response{TypeURL: r.typ.URL, Nonce: "n"}
			fill(resp, name)
			events = append(events, Received{refs[i], resp})
		}
		return events
	}
	for i, name := range names {
		w := r.watch(name)
		w.Source = int32(i)
		r.step(Start{w})
		r.ref = refs[i]
		r.up()
	}
	for _, task := range r.step(responses(func(resp *wire.Response, name string) {
		resp.Resources = []wire.Resource{{Name: []byte(name), Version: []byte("1"), TypeURL: []byte(r.typ.URL), Payload: []byte("1"), HasBody: true}}
	})...).Decode {
		r.decode(task)
	}
	for _, ref := range refs {
		r.step(Written{ref}, Delivered{ref})
	}
	var got []string
	for _, k := range r.step(responses(func(resp *wire.Response, name string) { resp.Removed = [][]byte{[]byte(name)} })...).Keep {
		for _, c := range k.Changes {
			got = append(got, fmt.Sprint(k.Source, c.Name))
		}
	}
	slices.Sort(got)
	if want := []string{"0" + names[0], "1" + names[1]}; !slices.Equal(got, want) {
		t.Errorf("forgotten are %v, want %v", got, want)
	}
}
