package examples_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/watcher"
)

// lookUp finds the endpoints of a service that a request names. The first caller waits for the
// server; whoever asks within the next minute does not.
func lookUp(ctx context.Context, c *client.Client, service string) (*endpointv3.ClusterLoadAssignment, int) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	found, err := watcher.Get(ctx, c, eds.Type, service)
	switch {
	case errors.Is(err, client.ErrDoesNotExist):
		return nil, http.StatusNotFound
	case err != nil:
		return nil, http.StatusServiceUnavailable
	}
	return found, http.StatusOK
}

// follow calls changed with each change of whichever services the program adds to the set
// (Set.Add) until it removes them (Set.Remove).
func follow(ctx context.Context, c *client.Client, changed func(*endpointv3.ClusterLoadAssignment)) (*client.Set, error) {
	return watcher.NewSet(ctx, c, eds.Type, func(b watcher.Batch[*endpointv3.ClusterLoadAssignment]) {
		for ev := range b.Changed() {
			changed(ev.Value)
		}
	})
}

func Example_onDemand() {
	m := manage(clustered("orders", "192.0.2.1:80")...)
	defer m.Stop()
	c := connect(m)
	defer c.Close()

	found, status := lookUp(ctx, c, "orders")
	fmt.Println(found.GetClusterName(), status)

	changed := make(chan *endpointv3.ClusterLoadAssignment, 16)
	services := must(follow(ctx, c, func(a *endpointv3.ClusterLoadAssignment) { changed <- a }))
	defer services.Stop()
	check(services.Add("orders"))
	fmt.Println((<-changed).GetClusterName())
	services.Remove("orders")
	// Output:
	// orders 200
	// orders
}
