package machine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// BenchmarkHostile is what it takes to be done with responses that are made to cost much: time
// and memory from the response to its answer, none of which holds anything that is new.
func BenchmarkHostile(b *testing.B) {
	const n, keys = 100_000, 1000
	own := []byte("own")
	aliases := make([][]byte, keys)
	for i := range aliases {
		aliases[i] = fmt.Appendf(nil, "alias-%04d", i)
	}
	entries := make([]wire.Resource, n)
	for i := range entries {
		entries[i] = wire.Resource{Name: own, TypeURL: []byte(scaleType.URL), HasBody: true}
	}
	others := make([]wire.Resource, n)
	for i := range others {
		others[i] = wire.Resource{Name: fmt.Appendf(nil, "xdstp://good/test.Foo/%d", i), TypeURL: []byte(scaleType.URL), HasBody: true}
	}
	big := []wire.Resource{{Name: own, TypeURL: []byte(scaleType.URL), HasBody: true, Payload: make([]byte, 16<<20+1)}}
	lister := []wire.Resource{{Name: own, TypeURL: []byte(scaleType.URL), HasBody: true, Attributes: &wire.Attributes{Aliases: aliases}, Fault: wire.ErrAliases}}
	for _, bench := range []struct {
		name string
		r    wire.Response
	}{
		{"entries of one name with aliases", wire.Response{Resources: entries}},
		{"removals of one name with aliases", wire.Response{Removed: slicesOf(n, own)}},
		{"errors of one name with aliases", wire.Response{Errors: errorsOf(n, own)}},
		{"removals of what nobody knows", wire.Response{Removed: slicesOf(n, []byte("nobody"))}},
		{"names of other authorities", wire.Response{Resources: others}},
		{"a resource over the limit", wire.Response{Resources: big}},
		{"too many aliases", wire.Response{Resources: lister}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			m := New(Config{MaxResource: 16 << 20})
			m.AddServer(Server{Delta: true})
			m.AddSource(Source{Servers: []int{0}, Answers: func(int, string) bool { return false }})
			for _, alias := range aliases {
				m.Step(scaleNow, Start{&Watch{Type: scaleType, Name: string(alias)}})
			}
			m.Step(scaleNow, Start{&Watch{Type: scaleType, Name: star, Wildcard: true}})
			ref := Ref{Gen: 1}
			m.Step(scaleNow, Up{Ref: ref})
			now := scaleNow.Add(time.Second)
			m.Step(now, Written{ref})
			answer := func(r wire.Response) {
				r.TypeURL, r.Nonce = scaleType.URL, "n"
				fx := m.Step(now, Received{ref, &r})
				for len(fx.consumed()) == 0 {
					switch {
					case len(fx.Decode) > 0:
						task := fx.Decode[0]
						for i := range task.Items {
							task.Items[i].Raw = bytes.Clone(task.Items[i].Raw)
						}
						fx = m.Step(now, Decoded{task, make([]Result, len(task.Items))})
					default:
						fx = m.Step(now)
					}
				}
				m.Step(now, Delivered{ref}, Written{ref})
			}
			answer(wire.Response{Resources: []wire.Resource{{
				Name: own, TypeURL: []byte(scaleType.URL), HasBody: true, Attributes: &wire.Attributes{Aliases: aliases},
			}}})
			b.ReportAllocs()
			for b.Loop() {
				answer(bench.r)
				now = now.Add(time.Minute)
			}
		})
	}
}

func slicesOf(n int, name []byte) (names [][]byte) {
	for range n {
		names = append(names, name)
	}
	return names
}

func errorsOf(n int, name []byte) (errs []wire.ResourceError) {
	for range n {
		errs = append(errs, wire.ResourceError{ResourceName: wire.ResourceName{Name: name}, Code: codePermissionDenied})
	}
	return errs
}
