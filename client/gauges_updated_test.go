package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// The time is that of a change, and not of a response that repeats what is held.
func TestGaugesUpdated(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		r.watch("b")
		st := r.accept()
		if got := r.c.Gauges().Updated; len(got) > 0 {
			t.Errorf("without a value: %v", got)
		}
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a", "1"), cluster("b", "1"))))
		synctest.Wait()
		time.Sleep(time.Second)
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a", "1"), cluster("b", "2"))))
		synctest.Wait()
		changed := time.Now()
		time.Sleep(time.Second)
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "3", "n3", cluster("a", "1"), cluster("b", "2"))))
		synctest.Wait()
		want := []client.LastUpdated{{Type: cds.Type.TypeURL(), At: changed}}
		if d := cmp.Diff(want, r.c.Gauges().Updated); d != "" {
			t.Error(d)
		}
	})
}
