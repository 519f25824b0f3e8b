package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// Names that take long to read, or more memory than they have bytes, hold up nobody.
//
// spec: H-2 H-5
func TestCostOfNames(t *testing.T) {
	race.SkipCost(t)
	const head = "xdstp://bad/envoy.config.cluster.v3.Cluster/"
	params := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "&%%41%d=", i*7919%n)
		}
		return b.String()[1:]
	}
	short, long := params(100), params(90_000)
	for name, tt := range map[string]struct {
		count   int
		name    func(i int) string
		payload bool // the name is in the message alone
	}{
		"escapes":                {60, func(i int) string { return head + fmt.Sprint(i) + strings.Repeat("%", 1<<20-100) }, false},
		"escapes, in messages":   {60, func(i int) string { return head + fmt.Sprint(i) + strings.Repeat("%", 1<<20-100) }, true},
		"many parameters":        {60, func(i int) string { return head + fmt.Sprint(i, "?") + long }, false},
		"parameters of each":     {100_000, func(i int) string { return head + fmt.Sprint(i, "?") + short }, false},
		"slashes in short names": {100_000, func(i int) string { return head + fmt.Sprint(i) + strings.Repeat("/", 900) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t)
			_, err := s.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
			must(t, err)
			st := s.stream()
			var rs []*discoveryv3.Resource
			for i := range tt.count {
				if tt.payload {
					r := testutil.Wrapped("", "1", cluster(tt.name(i), ""))
					rs = append(rs, r)
				} else {
					rs = append(rs, under(tt.name(i), "1", ""))
					rs[i].Resource = nil
				}
			}
			message := testutil.Delta(cds.Type.TypeURL(), "attack", rs)
			s.attack(0, func() {
				must(t, st.Send(message))
				for r := range s.answers {
					if r.Nonce() == "attack" || st.Err() != nil {
						break
					}
				}
			})
			s.close()
		})
	}
}
