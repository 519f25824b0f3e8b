package client_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// numbered are n names.
func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%05d", prefix, i))
	}
	return names
}

// under is a resource with aliases.
func under(name, version, alt string, aliases ...string) *discoveryv3.Resource {
	r := testutil.Wrapped(name, version, cluster(name, alt))
	r.Aliases = aliases
	return r
}

// wrappedState is a response in state of the world of wrapped resources.
func wrappedState(t *testing.T, version string, rs ...*discoveryv3.Resource) *discoveryv3.DiscoveryResponse {
	m := testutil.SotW(cds.Type.TypeURL(), version, version)
	for _, r := range rs {
		a, err := anypb.New(r)
		must(t, err)
		m.Resources = append(m.Resources, a)
	}
	return m
}

// A resource that lists the members of a wildcard as its aliases is refused where they are too
// many; where they are not they stay what they are.
//
// spec: H-1 C-1 ALIAS-2
func TestCostOfAliasesOfMembers(t *testing.T) {
	race.SkipCost(t)
	for _, n := range []int{1000, 12_000} {
		for _, sotw := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d sotw=%v", n, sotw), func(t *testing.T) {
				s := newSiege(t, func(c *client.Config) {
					if sotw {
						c.Variant = client.VariantFromBootstrap
						c.Bootstrap.Servers[0].Delta = false
						good := c.Bootstrap.Authorities["good"]
						good.Servers[0].Delta = true
					}
				})
				var heard tallied
				_, err := s.c.WatchAll(context.Background(), cds.Type, "*", heard.batch)
				must(t, err)
				st := s.stream()
				names := numbered("member-", n)
				var members []*discoveryv3.Resource
				for _, name := range names {
					members = append(members, under(name, "1", ""))
				}
				lister := under("lister", "2", "", names...)
				s.attack(0, func() {
					if sotw {
						must(t, st.Send(wrappedState(t, "1", members...)))
						must(t, st.Send(wrappedState(t, "2", append(members, lister)...)))
					} else {
						must(t, st.Send(testutil.Delta(cds.Type.TypeURL(), "1", members)))
						must(t, st.Send(testutil.Delta(cds.Type.TypeURL(), "2", []*discoveryv3.Resource{lister})))
					}
					s.answer("1")
					detail := s.answer("2").ErrorDetail()
					if n <= 1024 && detail != nil {
						t.Errorf("refused: %v", detail)
					}
					if n > 1024 && !strings.Contains(detail.GetMessage(), "more than 1024 aliases") {
						t.Errorf("not refused for its aliases: %v", detail)
					}
				})
				want := int64(n)
				if n <= 1024 {
					want++
				}
				if got := heard[client.EventUpdated].Load(); got != want {
					t.Errorf("%d updates were told, want %d", got, want)
				}
				s.close()
			})
		}
	}
}

// A resource of a megabyte that is watched under a thousand aliases is decoded and kept once.
//
// spec: H-1 ALIAS-2
func TestCostOfOneCopy(t *testing.T) {
	race.SkipCost(t)
	const n, size = 1000, 1 << 20
	s := newSiege(t)
	var updates atomic.Int64
	var values [2]atomic.Pointer[byte]
	names := numbered("alias-", n)
	for i, name := range names {
		_, err := s.c.Watch(context.Background(), cds.Type, name, func(ev client.Event[any]) {
			if ev.Kind == client.EventUpdated {
				updates.Add(1)
				if i < len(values) {
					values[i].Store(&ev.Raw[0])
				}
			}
		})
		must(t, err)
	}
	st := s.stream()
	for round := range 3 {
		nonce := fmt.Sprint(round)
		s.attack(size, func() {
			big := under("own", nonce, strings.Repeat(nonce, size), names...)
			must(t, st.Send(testutil.Delta(cds.Type.TypeURL(), nonce, []*discoveryv3.Resource{big})))
			if d := s.answer(nonce).ErrorDetail(); d != nil {
				t.Fatalf("refused: %v", d)
			}
		})
		eventually(t, func() bool { return updates.Load() == int64(n*(round+1)) })
	}
	if values[0].Load() != values[1].Load() {
		t.Error("two aliases have a copy each")
	}
	s.close()
}

// The aliases of a resource add up over responses. The one that would pass the limit is refused, and what is held stays.
//
// spec: H-1 ALIAS-2 ACK-6
func TestAliasesAddUp(t *testing.T) {
	const most = 1024
	s := newSiege(t)
	names := numbered("alias-", most+1)
	var heard tallied
	set, err := s.c.NewSet(context.Background(), cds.Type, heard.batch)
	must(t, err)
	must(t, set.Add(names...))
	st := s.stream()
	for i, listed := range [][]string{names[:most], names[most:]} {
		version := fmt.Sprint(i + 1)
		must(t, st.Send(testutil.Delta(cds.Type.TypeURL(), version, []*discoveryv3.Resource{under("own", version, "", listed...)})))
		detail := s.answer(version).ErrorDetail()
		if refused := strings.Contains(detail.GetMessage(), "more than 1024 aliases of the resource are watched"); refused != (i > 0) {
			t.Errorf("response %s is answered with %v", version, detail)
		}
	}
	eventually(t, func() bool { return heard[client.EventAmbientError].Load() == most })
	if got := heard[client.EventUpdated].Load(); got != most {
		t.Errorf("%d updates were told, want %d", got, most)
	}
	s.close()
}

// Of a type on one stream 65,536 aliases are kept. A resource that would add more is refused.
//
// spec: H-1 ALIAS-2
func TestCostOfAliasesOfType(t *testing.T) {
	race.SkipCost(t)
	const most = 1 << 16
	s := newSiege(t)
	names := numbered("alias-", most+1)
	set, err := s.c.NewSet(context.Background(), cds.Type, func(client.Batch[any]) {})
	must(t, err)
	must(t, set.Add(names...))
	st := s.stream()
	s.attack(0, func() {
		var rs []*discoveryv3.Resource
		for i := range most / 1024 {
			rs = append(rs, under(fmt.Sprint("own-", i), "1", "", names[i*1024:(i+1)*1024]...))
		}
		rs = append(rs, under("last", "1", "", names[most]))
		must(t, st.Send(testutil.Delta(cds.Type.TypeURL(), "1", rs)))
		detail := s.answer("1").ErrorDetail()
		if !strings.Contains(detail.GetMessage(), "last: the resources of the type have more than 65536 aliases") {
			t.Errorf("answered with %v", detail)
		}
	})
	s.close()
}

// The work on a response does not grow with entries times aliases.
//
// spec: H-2
func TestCostOfOneName(t *testing.T) {
	race.SkipCost(t)
	n, kind := 600_000, eds.Type.TypeURL() // more are refused for what they take
	own := &discoveryv3.Resource{Name: "own"}
	entry, err := proto.Marshal(own)
	must(t, err)
	failure, err := proto.Marshal(&discoveryv3.ResourceError{ResourceName: &discoveryv3.ResourceName{Name: "own"}, ErrorDetail: statusOf(7)})
	must(t, err)
	fine, err := proto.Marshal(&discoveryv3.ResourceError{ResourceName: &discoveryv3.ResourceName{Name: "own"}})
	must(t, err)
	for name, message := range map[string][]byte{
		"entries":  repeated(testutil.Delta(kind, "attack", nil), 2, min(n, wire.MaxResources), func(int) []byte { return entry }),
		"removals": repeated(testutil.Delta(kind, "attack", nil), 6, n, func(int) []byte { return []byte("own") }),
		"errors":   repeated(testutil.Delta(kind, "attack", nil), 9, n, func(int) []byte { return failure }),
		"no errors": repeated(testutil.Delta(kind, "attack", nil), 9, n, func(int) []byte {
			return fine
		}),
		"errors beside it": repeated(testutil.Delta(kind, "attack", []*discoveryv3.Resource{testutil.Wrapped("own", "2", assignment("own"))}), 9, n, func(int) []byte {
			return failure
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t)
			aliases := numbered("alias-", 1000)
			set, err := s.c.NewSet(context.Background(), eds.Type, func(client.Batch[any]) {})
			must(t, err)
			must(t, set.Add(aliases...))
			st := s.stream()
			first := testutil.Wrapped("own", "1", assignment("own"))
			first.Aliases = aliases
			must(t, st.Send(testutil.Delta(kind, "first", []*discoveryv3.Resource{first})))
			s.answer("first")
			s.attack(len(message), func() {
				must(t, st.SendBytes(message))
				s.answer("attack")
			})
			must(t, st.SendBytes(message))
			s.close()
		})
	}
}
