package machine

import (
	"slices"
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// A notice says that a locator replaces a value only where all watches of collections were told of that.
//
// spec: REDIR-2
func TestReplaces(t *testing.T) {
	const name = "xdstp://a/t/x"
	r := newRig(t, Config{})
	receive := func(version, url string) (replaces bool) {
		t.Helper()
		resp := &wire.Response{TypeURL: r.typ.URL, Version: version, Nonce: version, Resources: []wire.Resource{{
			Name: []byte(name), TypeURL: []byte(url), Payload: []byte(version), HasBody: true,
		}}}
		tasks := r.step(Received{r.ref, resp}).Decode
		if len(tasks) != 1 {
			t.Fatalf("%d tasks, want 1", len(tasks))
		}
		notices := r.decode(tasks[0]).Notify
		r.step(Written{r.ref}, Delivered{r.ref})
		i := slices.IndexFunc(notices, func(n Notice) bool { return n.Kind == NoticeUpdated })
		return notices[i].Replaces
	}
	r.typ.Segment = ""
	r.step(Start{r.watch(star)})
	r.up()
	for _, step := range []struct {
		version, url string
		late, want   bool
	}{
		{"1", wire.LocatorURL, false, false},
		{"2", r.typ.URL, false, false},
		{"3", wire.LocatorURL, false, true},
		{"4", wire.LocatorURL, false, false},
		{"5", r.typ.URL, false, false},
		{"6", wire.LocatorURL, true, false},
	} {
		if step.late {
			r.step(Start{r.watch(star)}) // its tasks are not decoded
		}
		if got := receive(step.version, step.url); got != step.want {
			t.Errorf("version %s, a late watch %v: replaces %v, want %v", step.version, step.late, got, step.want)
		}
	}
}
