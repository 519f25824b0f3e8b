package view

import (
	"errors"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// A client has one form of each type. Who comes second with another form hears it at once: New of
// a view for its root, the entry of a cluster below another root, and a lazy watch after a view.
func TestLazyTypeConflict(t *testing.T) {
	lazy := resource.LazyOf(cds.Type)
	ignore := func(client.Batch[any]) {}
	resources := []string{"cds a static:1.1.1.1", "rds r *=a"}

	t.Run("lazy first", func(t *testing.T) {
		s := newSite(t, client.VariantSotW, true)
		s.set("1", resources...)
		_, err := s.c.WatchAll(t.Context(), lazy, "*", ignore)
		must(t, err)

		v, err := New(t.Context(), s.c, Root{Type: RootCluster, Name: "a"}, Config{})
		if v != nil || !errors.Is(err, client.ErrTypeConflict) || !strings.Contains(err.Error(), "envoy.config.cluster.v3.Cluster") {
			t.Errorf("New of a cluster: %v, %v; want ErrTypeConflict with the type", v, err)
		}

		v, err = New(t.Context(), s.c, Root{Type: RootRoutes, Name: "r"}, Config{})
		must(t, err)
		must(t, v.Ready(t.Context()))
		if e := v.Snapshot().Cluster("a"); e == nil || !errors.Is(e.Err(), client.ErrTypeConflict) {
			t.Errorf("the cluster below routes: %+v; want ErrTypeConflict", e)
		}
	})

	t.Run("view first", func(t *testing.T) {
		s := newSite(t, client.VariantSotW, true)
		s.set("1", resources...)
		v, err := New(t.Context(), s.c, Root{Type: RootCluster, Name: "a"}, Config{})
		must(t, err)
		if _, err := s.c.WatchAll(t.Context(), lazy, "*", ignore); !errors.Is(err, client.ErrTypeConflict) {
			t.Errorf("WatchAll: %v, want ErrTypeConflict", err)
		}
		must(t, v.Ready(t.Context()))
	})
}
