package machine

import (
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// A file answers all names at once: what it lacks does not exist, also beside an error for everything.
//
// spec: FILE-3 SOTW-7 ERR-9
func TestFileAnswersAll(t *testing.T) {
	r := newRig(t, Config{}, Server{AlwaysFull: true})
	absent := func(errors ...string) (names []string) {
		resp := &wire.Response{TypeURL: r.typ.URL, Version: "1", Nonce: "1", Resources: []wire.Resource{{
			Name: []byte("a"), TypeURL: []byte(r.typ.URL), Payload: []byte("1"), HasBody: true,
		}}}
		for _, name := range errors {
			resp.Errors = append(resp.Errors, wire.ResourceError{ResourceName: wire.ResourceName{Name: []byte(name)}, Code: codeInvalidArgument})
		}
		hear := func(fx Effects) []*Task {
			for _, n := range fx.Notify {
				if n.Kind == NoticeDoesNotExist {
					names = append(names, n.Name)
				}
			}
			return fx.Decode
		}
		for _, task := range hear(r.step(Received{r.ref, resp})) {
			hear(r.decode(task))
		}
		r.step(Written{r.ref}, Delivered{r.ref})
		return names
	}
	b := r.watch("b")
	r.step(Start{r.watch("a")}, Start{b})
	r.up()
	if names := absent(); len(names) != 1 || names[0] != "b" {
		t.Errorf("%v are told to be absent, want b", names)
	}
	for _, ev := range []Event{Stop{b}, Start{r.watch(star)}, Start{r.watch("c")}} {
		r.now = r.now.Add(time.Second)
		r.step(ev)
		r.step(Written{r.ref})
	}
	if names := absent(star); len(names) != 1 || names[0] != "c" {
		t.Errorf("%v are told to be absent beside the error, want c", names)
	}
}
