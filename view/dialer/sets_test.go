package dialer

import (
	"fmt"
	"net"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view"
)

// A dialer keeps nothing of clusters that have left the view.
func TestSetsOfThePast(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	const n = 40
	at := viewtest.At(uint32(lis.Addr().(*net.TCPAddr).Port))
	all := []proto.Message{viewtest.Cluster("root"), viewtest.Assignment("root", at)}
	for i := range n {
		name := fmt.Sprintf("c%d", i)
		all = append(all, viewtest.Cluster(name), viewtest.Assignment(name, at))
	}
	viewtest.Set(t, m, "1", all...)
	v, err := view.New(t.Context(), viewtest.Client(t, m), view.Root{Type: view.RootCluster, Name: "root"}, view.Config{OnDemandIdle: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	d := New(v, Config{})
	for i := range n {
		name := fmt.Sprintf("c%d", i)
		conn, err := d.Dial(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		for changed := v.Changed(); v.Snapshot().Cluster(name) != nil; changed = v.Changed() {
			<-changed
		}
	}
	kept := 0
	for range d.sets.Range {
		kept++
	}
	if kept > n/4 {
		t.Errorf("%d sets of %d clusters that are gone", kept, n)
	}
}
