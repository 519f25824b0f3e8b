package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// Millions of removals of what nobody knows hold up nobody, and those of what is held count.
// Where they are more than a response may have for its size its stream ends.
//
// spec: H-12 H-2
func TestCostOfRemovals(t *testing.T) {
	race.SkipCost(t)
	url, tooMany := cds.Type.TypeURL(), 10_000_000
	for name, n := range map[string]int{"many": 1_500_000, "too many": tooMany} {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t)
			var heard tallied
			_, err := s.c.WatchAll(context.Background(), cds.Type, "*", heard.batch)
			must(t, err)
			st := s.stream()
			must(t, st.Send(testutil.Delta(url, "first", []*discoveryv3.Resource{under("held", "1", ""), under("stays", "1", "")})))
			s.answer("first")
			message := repeated(testutil.Delta(url, "attack", nil, "held"), 6, n, func(i int) []byte { return fmt.Appendf(nil, "%08d", i) })
			s.attack(len(message), func() {
				must(t, st.SendBytes(message))
				for {
					select {
					case st := <-s.streams: // it was refused as a whole
						must(t, st.Send(testutil.Delta(url, "again", nil)))
						s.answer("again")
						return
					case r := <-s.answers:
						if r.Nonce() == "attack" {
							eventually(t, func() bool { return heard[client.EventDoesNotExist].Load() == 1 })
							return
						}
					case <-time.After(2 * time.Minute):
						t.Fatal("neither an answer nor another stream came")
					}
				}
			})
			s.close()
		})
	}
}

// Servers take turns in decoding: a hundred thousand resources of one do not hold up another, nor
// Close.
//
// spec: H-2
func TestDecodingTakesTurns(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a hundred thousand resources")
	}
	n := many(100_000)
	s := newSiege(t)
	var heard tallied
	_, err := s.c.WatchAll(context.Background(), cds.Type, "*", heard.batch)
	must(t, err)
	st := s.stream()
	message := func(nonce, version string) []byte {
		return repeated(testutil.Delta(cds.Type.TypeURL(), nonce, nil), 2, n, func(i int) []byte {
			b, err := proto.Marshal(under(fmt.Sprintf("member-%06d", i), version, strings.Repeat(version, 200)))
			must(t, err)
			return b
		})
	}
	first, second := message("first", "1"), message("second", "2")
	held := 20 * len(first) // decoded values and their events, which the handler has for a while
	s.attack(held, func() {
		must(t, st.SendBytes(first))
		s.answer("first")
		eventually(t, func() bool { return heard[client.EventUpdated].Load() == int64(n) })
	})
	must(t, st.SendBytes(second))
	s.close()
}
