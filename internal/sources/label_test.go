package sources

import (
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/machine"
)

// The loop asks for labels while somebody who makes a source waits for the loop.
//
// spec: METRIC-2
func TestLabelWhileSourceIsMade(t *testing.T) {
	var s *Sources
	asked := false
	table, s, _, _ := sourcesOf(t, &bootstrap.Config{
		Servers: servers("one"), Authorities: map[string]bootstrap.Authority{"a": {}},
	}, func([]machine.Source) {
		asked = true
		label := make(chan string, 1)
		go func() { label <- s.Label("a") }()
		select {
		case got := <-label:
			if got != "a" {
				t.Errorf("label %q", got)
			}
		case <-time.After(5 * time.Second):
			t.Error("the loop waits for the source, which waits for the loop")
		}
	})
	r, err := table.Resolve("type.googleapis.com/a.B", "xdstp://a/a.B/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(table, Place{r.Key(), "scope"}, r); err != nil || !asked {
		t.Fatalf("%v, asked %t", err, asked)
	}
}
