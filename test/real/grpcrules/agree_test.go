package grpcrules

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/validate/grpcrules"
)

var (
	seed  = flag.Uint64("seed", 1, "what the random resources are made of")
	count = flag.Int("count", 400, "how many random resources of each base are judged")
)

// Random resources are judged by gRPC's own client and by the rules, and both agree.
func TestAgree(t *testing.T) {
	j := newJudge(t, listener(), routes(), cluster(), assignment())
	var pool []*anypb.Any
	for _, m := range parts() {
		a, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		pool = append(pool, a)
	}
	on := os.Getenv(option)
	options := grpcrules.Options{
		Providers: map[string]bool{"there": true},
		SNI:       on == "sni", HTTPConnect: on == "connect", GCPAuthentication: on == "authn", SystemRoots: on == "roots",
	}
	for name, base := range bases() {
		r := mutator{rand.New(rand.NewPCG(*seed, 0)), pool}
		refused, faults := 0, 0
		for i := range *count {
			m := base
			if i > 0 {
				m = r.mutate(base)
			}
			want, got := j.judge(m), options.Check(m)
			if want != "" {
				refused++
			}
			if (want == "") == (got == nil) {
				continue
			}
			text, err := protojson.MarshalOptions{AllowPartial: true, Multiline: true}.Marshal(m)
			if err != nil {
				text = []byte(m.ProtoReflect().Descriptor().FullName())
			}
			if len(want) > 600 {
				want = "…" + want[len(want)-600:]
			}
			t.Errorf("%s %d: gRPC says %q, the rules say %v of %s", name, i, want, got, text)
			if faults++; faults == 5 {
				break
			}
		}
		t.Logf("%s: %d of %d refused", name, refused, *count)
	}
}
