// Command grpcgo drives grpc-go's own xDS client (internal/xds/clients/xdsclient), the one
// beneath its xDS resolver and balancers.
//
// The decoder unmarshals the resource and keeps the message and its bytes (-retain=bytes:
// the bytes only), and calls two versions equal when their bytes are, as grpc-go's decoders
// do. They do more: validation, and a translation into structs of their own.
//
// -gate holds back the first stream until every watch is registered. Without it the client
// sends the complete list of names once for every new name. It cannot be done without
// wrapping the transport, and it does not save the client from making all those lists.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/internal/xds/clients"
	"google.golang.org/grpc/internal/xds/clients/grpctransport"
	"google.golang.org/grpc/internal/xds/clients/xdsclient"

	"github.com/xdswatch/xdswatch/bench/kit"
)

func main() {
	gate := flag.Bool("gate", false, "no stream before all watches are registered")
	maxRecv := flag.Int("maxrecv", math.MaxInt32, "grpc.MaxCallRecvMsgSize; 0 leaves gRPC's 4 MiB, as grpc-go does")
	kit.Main("grpcgo", missing, func(e *kit.Env) (kit.Client, error) { return start(e, *gate, *maxRecv) })
}

func missing(c *kit.Config) string {
	switch {
	case c.Variant != "sotw":
		return "the client has no delta"
	case c.Mode == kit.Wildcard:
		return "the client has no wildcard"
	case c.N > 30000:
		return "names sent (or held, with -gate) grow with the square of N"
	}
	return ""
}

type client struct {
	e       *kit.Env
	c       *xdsclient.XDSClient
	open    chan struct{} // closed when the stream may be opened
	cancels map[string]func()
	shown   sync.Once
}

func start(e *kit.Env, gate bool, maxRecv int) (kit.Client, error) {
	c := &client{e: e, open: make(chan struct{}), cancels: map[string]func(){}}
	tb := transport(e, maxRecv)
	if gate {
		tb = &gated{tb, c.open}
	}
	typ := e.TypeURL()
	var err error
	c.c, err = xdsclient.New(xdsclient.Config{
		Servers: []xdsclient.ServerConfig{{ServerIdentifier: clients.ServerIdentifier{
			ServerURI:  "passthrough:///" + e.Addr,
			Extensions: grpctransport.ServerIdentifierExtension{ConfigName: configName},
		}}},
		Node:             clients.Node{ID: "bench"},
		TransportBuilder: tb,
		ResourceTypes: map[string]xdsclient.ResourceType{typ: {
			TypeURL: typ, TypeName: e.Type, AllResourcesRequiredInSotW: e.Type == "cds",
			Decoder: &decoder{keep: e.Retain != "bytes", typ: typ},
		}},
		WatchExpiryTimeout: 10 * time.Minute,
	})
	return c, err
}

const configName = "bench"

func transport(e *kit.Env, maxRecv int) clients.TransportBuilder {
	return grpctransport.NewBuilder(map[string]grpctransport.Config{configName: {
		Credentials: bundle(e.ClientTLS()),
		GRPCNewClient: func(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
			if maxRecv > 0 {
				opts = append(opts, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxRecv)))
			}
			return grpc.NewClient(target, opts...)
		},
	}})
}

func (c *client) Subscribe(names []string) error {
	for _, n := range names {
		c.watch(n, 0)
	}
	close(c.open)
	return nil
}

func (c *client) Watch(name string, n int) error {
	c.watch(name, n)
	if c.e.Work == kit.Fanout && n == c.e.Watchers-1 || c.e.Work == kit.Incr && name == c.e.Scenario().Name(0) {
		close(c.open)
	}
	return nil
}

func (c *client) watch(name string, n int) {
	cancel := c.c.WatchResource(c.e.TypeURL(), name, &watcher{c, n})
	if c.e.Work == kit.Cancel {
		c.cancels[name] = cancel
	}
}

func (c *client) Cancel(name string) error {
	c.cancels[name]()
	return nil
}

func (c *client) Close() { c.c.Close() }

type watcher struct {
	c *client
	n int
}

func (w *watcher) ResourceChanged(r xdsclient.ResourceData, done func()) {
	d := r.(*data)
	w.c.e.Deliver(d.name, w.n, d.stamp)
	done()
}

func (w *watcher) ResourceError(err error, done func()) { w.fault("resource error", err, done) }
func (w *watcher) AmbientError(err error, done func())  { w.fault("ambient error", err, done) }

func (w *watcher) fault(what string, err error, done func()) {
	w.c.shown.Do(func() { fmt.Fprintln(os.Stderr, what+":", err, "(further errors not shown)") })
	done()
}
