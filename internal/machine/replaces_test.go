package machine

import (
	"slices"
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// A notice says that a locator replaces a value.
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
		want         bool
	}{
		{"1", wire.LocatorURL, false},
		{"2", r.typ.URL, false},
		{"3", wire.LocatorURL, true},
		{"4", wire.LocatorURL, false},
		{"5", r.typ.URL, false},
	} {
		if got := receive(step.version, step.url); got != step.want {
			t.Errorf("version %s: replaces %v, want %v", step.version, got, step.want)
		}
	}
}
