package watcher_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// Typed handlers get the form of their type, whichever of them began first.
//
// spec: U-19
func TestTypedLazyBesidePlain(t *testing.T) {
	lazy := resource.LazyOf(cds.Type)
	for _, first := range []string{"lazy", "plain"} {
		t.Run(first+" first", func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				told := map[string][]string{} // by form: the alternative names
				begin := map[string]func(){
					"lazy": func() {
						_, err := watcher.Watch(context.Background(), r.c, lazy, "a", func(ev watcher.Event[*resource.Lazy[*cluster]]) {
							if ev.Kind != client.EventUpdated || ev.Value == nil {
								t.Errorf("the lazy handler hears %v without a value", ev.Kind)
								return
							}
							c, err := ev.Value.Value()
							must(t, err)
							if string(ev.Value.Raw()) != string(ev.Raw) {
								t.Error("the lazy value has other bytes than the event")
							}
							told["lazy"] = append(told["lazy"], c.AltStatName)
						})
						must(t, err)
					},
					"plain": func() {
						_, err := watcher.Watch(context.Background(), r.c, cds.Type, "a", func(ev event) {
							if ev.Kind != client.EventUpdated || ev.Value == nil {
								t.Errorf("the plain handler hears %v without a value", ev.Kind)
								return
							}
							told["plain"] = append(told["plain"], ev.Value.AltStatName)
						})
						must(t, err)
					},
				}
				begin[first]()
				st, err := r.srv.Accept(t.Context())
				must(t, err)
				send := func(version string) {
					t.Helper()
					synctest.Wait()
					must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), version, version, &cluster{Name: "a", AltStatName: version})))
					synctest.Wait()
				}
				send("1")
				for _, form := range []string{"lazy", "plain"} {
					if form != first {
						begin[form]()
					}
				}
				send("2")
				for _, form := range []string{"lazy", "plain"} {
					if got := told[form]; len(got) != 2 || got[0] != "1" || got[1] != "2" {
						t.Errorf("the %s handler heard %q, want 1 and 2", form, got)
					}
				}
			})
		})
	}
}
