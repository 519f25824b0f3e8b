package circuit

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type threshold = clusterv3.CircuitBreakers_Thresholds

func cluster(name, service string, all ...*threshold) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{ServiceName: service},
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: all},
	}
}

// spec: VIEW-66
func TestMaxRequests(t *testing.T) {
	high := &threshold{Priority: corev3.RoutingPriority_HIGH, MaxRequests: wrapperspb.UInt32(3)}
	most := func(n uint32) *threshold { return &threshold{MaxRequests: wrapperspb.UInt32(n)} }
	for name, tt := range map[string]struct {
		all  []*threshold
		want int64
	}{
		"none":                {nil, 1024},
		"no default priority": {[]*threshold{high}, 1024},
		"default priority":    {[]*threshold{high, most(7)}, 7},
		"nothing":             {[]*threshold{most(0)}, 0},
		"two":                 {[]*threshold{most(7), most(8)}, 7},
		"the first is silent": {[]*threshold{{}, most(8)}, 1024},
	} {
		if got := new(Breakers).Of(cluster("a", "", tt.all...)).Max(); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// Versions of a cluster share a count, and so does who shares the breakers; another assignment is
// another count.
//
// spec: VIEW-66
func TestShared(t *testing.T) {
	b := &Breakers{}
	old := b.Of(cluster("a", "s", &threshold{MaxRequests: wrapperspb.UInt32(2)}))
	now := b.Of(cluster("a", "s", &threshold{MaxRequests: wrapperspb.UInt32(1)}))
	if !old.Enter() || now.Enter() {
		t.Error("the second of one may begin")
	}
	if !old.Enter() || old.Enter() {
		t.Error("the third of two may begin")
	}
	for _, other := range []*Limit{b.Of(cluster("a", "t")), b.Of(cluster("b", "s")), new(Breakers).Of(cluster("a", "s"))} {
		for range 1024 {
			if !other.Enter() {
				t.Fatal("another cluster's requests count")
			}
		}
	}
	old.Leave()
	old.Leave()
	if !now.Enter() {
		t.Error("none may begin although none runs")
	}
	var none *Limit
	if !none.Enter() {
		t.Error("no limit is one")
	}
	none.Leave()
	if none.Max() != math.MaxInt64 {
		t.Errorf("no limit has the bound %d", none.Max())
	}
}

// Counts that nobody has are forgotten, and only those.
func TestForgotten(t *testing.T) {
	b := &Breakers{}
	kept := b.Of(cluster("kept", "", &threshold{MaxRequests: wrapperspb.UInt32(1)}))
	kept.Enter()
	for i := range 10_000 {
		b.Of(cluster(fmt.Sprint(i), ""))
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	if n := len(b.all); n > 5000 {
		t.Errorf("%d counts are kept", n)
	}
	if b.Of(cluster("kept", "", &threshold{MaxRequests: wrapperspb.UInt32(1)})).Enter() {
		t.Error("a count in use was forgotten")
	}
	runtime.KeepAlive(kept)
}
