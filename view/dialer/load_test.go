package dialer_test

import (
	"testing"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/dialer"
)

// Connections are reported to the management server.
func TestReportLoad(t *testing.T) {
	loads := viewtest.NewLoads()
	ctx, m := viewtest.Patience(t), viewtest.Management(t, loads.Option())
	_, port := listen(t)
	away, awayPort := listen(t)
	away.Close()
	viewtest.Set(t, m, "1",
		viewtest.Reported(viewtest.Cluster("root")), viewtest.Assignment("root", viewtest.At(port)),
		viewtest.Reported(viewtest.Cluster("away")), viewtest.Assignment("away", viewtest.At(awayPort)))
	c := viewtest.Client(t, m)
	r := loads.Reporter(t, c)
	v, err := view.New(t.Context(), c, view.Root{Type: view.RootCluster, Name: "root"}, view.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := dialer.New(v, dialer.Config{Load: r, Attempts: 2})
	first, err := d.Dial(ctx, "root")
	if err != nil {
		t.Fatal(err)
	}
	loads.Await(t)
	if _, err := d.Dial(ctx, "away"); err == nil {
		t.Error("a connection to nobody")
	}
	second, err := d.Dial(ctx, "root")
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	first.Close()
	r.Close()
	second.Close()
	if got, want := loads.Of("root"), (viewtest.Load{Issued: 2, Succeeded: 1, Localities: "here"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := loads.Of("away"), (viewtest.Load{Issued: 2, Failed: 2, Localities: "here"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
