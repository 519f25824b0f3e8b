package machine

import (
	"fmt"
	"testing"
)

// Who asks for what is held makes no stream.
func TestHeldMakesNothing(t *testing.T) {
	r := newRig(t, Config{}, Server{PerType: true})
	for i := range 10 {
		if _, ok := r.m.Held(0, fmt.Sprint("type.googleapis.com/test.T", i), "a"); ok {
			t.Fatal("something is known of what was never asked for")
		}
	}
	if len(r.m.streams) != 0 || len(r.m.working) != 0 {
		t.Errorf("there are %d streams and %d chains", len(r.m.streams), len(r.m.working))
	}
}
