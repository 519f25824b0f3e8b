package examples_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
)

// start waits for the first configuration, and says what is missing if it does not come.
func start(ctx context.Context, out io.Writer, v *view.View) {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	err := v.Ready(ctx)
	if e, ok := errors.AsType[*view.NotReadyError](err); ok {
		for _, w := range e.Waiting {
			fmt.Fprintf(out, "waiting for %s %q: %s\n", path.Base(w.Type), w.Name, w.Reason)
		}
	}
}

// explain writes, at any time, what is missing, refused or not acknowledged, and why.
func explain(out io.Writer, c *client.Client, v *view.View) {
	for s := range c.States() {
		if s.Err != nil || s.Status != "ACKED" {
			fmt.Fprintf(out, "%s %q is %s: %v\n", path.Base(s.Type), s.Name, s.Status, s.Err)
		}
	}
	if s := v.Snapshot(); s != nil && s.Err == nil {
		for cluster := range s.Clusters() {
			if err := errors.Join(cluster.Err(), s.Note(cluster)); err != nil {
				fmt.Fprintf(out, "cluster %q is %s: %v\n", cluster.Name, cluster.Status(), err)
			}
		}
	}
}

// traced makes a client that tells of each response and how it was answered.
func traced(boot *bootstrap.Config, tell func(client.AnswerInfo)) (*client.Client, error) {
	return client.New(client.Config{Bootstrap: boot, Trace: &client.Trace{ACK: tell, NACK: tell}})
}

func Example_debugging() {
	m := must(testutil.NewManagementServer(testutil.ManagementConfig{}))
	defer m.Stop()
	answers := make(chan client.AnswerInfo, 16)
	c := must(traced(must(bootstrap.Server(m.Addr())), func(a client.AnswerInfo) { answers <- a }))
	defer c.Close()
	v := must(view.New(ctx, c, view.Root{Type: view.RootCluster, Name: "orders"}, view.Config{}))
	start(ctx, os.Stdout, v) // the server has nothing

	for i, timeout := range []string{"1s", "-1s"} {
		check(m.Set(fmt.Sprint(i), append(clustered("orders", "192.0.2.1:80")[1:], resources(`
"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
name: orders
connect_timeout: %s
`, timeout)...)...))
		a := <-answers
		fmt.Printf("%s version %s is answered with the error %v\n", path.Base(a.Type), a.Version, a.Err)
	}
	var out strings.Builder
	explain(&out, c, v)
	fmt.Print(strings.ReplaceAll(out.String(), m.Addr(), "xds.example:18000"))
	// Output:
	// waiting for envoy.config.cluster.v3.Cluster "orders": no answer yet
	// envoy.config.cluster.v3.Cluster version 0 is answered with the error <nil>
	// envoy.config.cluster.v3.Cluster version 1 is answered with the error resource index 0: orders: not a valid envoy.config.cluster.v3.Cluster: invalid Cluster.ConnectTimeout: value must be greater than 0s
	// envoy.config.cluster.v3.Cluster "orders" is NACKED: xds: envoy.config.cluster.v3.Cluster "orders" of server "xds.example:18000" for node "": rejected: not a valid envoy.config.cluster.v3.Cluster: invalid Cluster.ConnectTimeout: value must be greater than 0s
	// cluster "orders" is ok: xds: envoy.config.cluster.v3.Cluster "orders" of server "xds.example:18000" for node "": rejected: not a valid envoy.config.cluster.v3.Cluster: invalid Cluster.ConnectTimeout: value must be greater than 0s
}
