// Command xdswatch drives this project's client through its typed API. What it is given is
// not kept: the handlers are one for all names, and what Watch returns is dropped except
// where it is to be cancelled.
//
// -set subscribes with one [client.Set] in place of a watch for each name; -mode=wildcard
// and -mode=glob with WatchAll. -pertype has a stream for the type in place of the aggregated
// one. -pgv runs the messages' validation rules, which no other driver does. -lazy has resources
// that are decoded when they are read, and reads none: the stamps are found in the bytes. -store
// keeps the resources in a directory, and -offline starts from it without a server.
package main

import (
	"context"
	"errors"
	"flag"
	"math"
	"net"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3" // in the clusters: a store keeps what can be looked into
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bench/kit"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/watcher"
)

func main() {
	pgv := flag.Bool("pgv", false, "run the messages' validation rules")
	set := flag.Bool("set", false, "subscribe with a set")
	perType := flag.Bool("pertype", false, "a stream for the type")
	lazy := flag.Bool("lazy", false, "decode nothing")
	dir := flag.String("store", "", "the directory of a store")
	offline := flag.Bool("offline", false, "no server can be reached")
	kit.Main("xdswatch", func(*kit.Config) string { return "" }, func(e *kit.Env) (kit.Client, error) {
		config := client.Config{
			ResourceTimeout: -1, SkipValidation: !*pgv,
			GRPC: transport.GRPCConfig{MaxReceiveSize: math.MaxInt32}, // the server sends all in one response
		}
		if *perType {
			config.Streams = client.StreamsPerType
		}
		if *dir != "" {
			config.Store = store.Dir(*dir, store.Options{})
		}
		if *offline {
			config.GRPC.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				return nil, errors.New("offline")
			})}
		}
		return start(e, config, *set, *lazy)
	})
}

func start(e *kit.Env, config client.Config, set, lazy bool) (kit.Client, error) {
	boot, err := servers(e)
	if err != nil {
		return nil, err
	}
	config.Bootstrap = boot
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	switch isEDS := e.Type == kit.EDSType; {
	case isEDS && lazy:
		return newLazy(e, c, set, eds.Type, 2, 2, 1, 3), nil
	case isEDS:
		return newDriver(e, c, set, eds.Type, func(a *endpointv3.ClusterLoadAssignment, _ []byte) string {
			return a.Endpoints[0].LbEndpoints[0].GetEndpoint().Hostname
		}), nil
	case lazy:
		return newLazy(e, c, set, cds.Type, 28), nil
	}
	return newDriver(e, c, set, cds.Type, func(c *clusterv3.Cluster, _ []byte) string { return c.AltStatName }), nil
}

// newLazy makes a driver that finds the stamp in a resource's bytes, along a path of fields.
func newLazy[T proto.Message](e *kit.Env, c *client.Client, set bool, typ *resource.Type[T], path ...protowire.Number) kit.Client {
	return newDriver(e, c, set, resource.LazyOf(typ), func(_ *resource.Lazy[T], b []byte) string {
		for _, want := range path {
			b = find(b, want)
		}
		return string(b)
	})
}

// find finds the first field of a number in a message.
func find(b []byte, want protowire.Number) []byte {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		m := protowire.ConsumeFieldValue(num, typ, b[n:])
		if num == want {
			v, _ := protowire.ConsumeBytes(b[n:])
			return v
		}
		b = b[n+m:]
	}
	return nil
}

// servers is a bootstrap with the servers of the authorities, if there are any.
func servers(e *kit.Env) (*bootstrap.Config, error) {
	boot, err := bootstrap.Server("passthrough:///" + e.Addr)
	if err != nil {
		return nil, err
	}
	server := &boot.Servers[0]
	server.Delta = e.Variant == kit.Delta
	if e.TLS {
		server.ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{CACertificate: e.CA}}
	}
	sc := e.Scenario()
	boot.Authorities = map[string]bootstrap.Authority{}
	for a := range sc.Authorities {
		addr, err := kit.ServerAddr(e.Addr, sc.ServerOf(a))
		if err != nil {
			return nil, err
		}
		its := *server
		its.URI = "passthrough:///" + addr
		boot.Authorities[kit.Authority(a)] = bootstrap.Authority{Servers: []bootstrap.ManagementServer{its}}
	}
	return boot, nil
}

type driver[T any] struct {
	e       *kit.Env
	c       *client.Client
	typ     *resource.Type[T]
	set     bool
	stamp   func(value T, raw []byte) string
	handler func(watcher.Event[T]) // of watcher 0
	watches map[string]*client.Watch
}

func newDriver[T any](e *kit.Env, c *client.Client, set bool, typ *resource.Type[T], stamp func(value T, raw []byte) string) *driver[T] {
	d := &driver[T]{e: e, c: c, typ: typ, set: set, stamp: stamp, watches: map[string]*client.Watch{}}
	d.handler = d.handlerOf(0)
	return d
}

func (d *driver[T]) handlerOf(number int) func(watcher.Event[T]) {
	return func(ev watcher.Event[T]) {
		if ev.Kind == client.EventUpdated {
			d.e.Deliver(ev.Name, number, d.stamp(ev.Value, ev.Raw))
		}
	}
}

func (d *driver[T]) batch(b watcher.Batch[T]) {
	for ev := range b.Changed() {
		d.handler(ev)
	}
}

func (d *driver[T]) Subscribe(names []string) error {
	switch {
	case names == nil:
		return d.collections("*")
	case d.e.Mode == kit.Glob:
		return d.collections(names...)
	case d.set:
		s, err := watcher.NewSet(context.Background(), d.c, d.typ, d.batch)
		if err != nil {
			return err
		}
		return s.Add(names...)
	}
	for _, name := range names {
		if err := d.Watch(name, 0); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver[T]) collections(names ...string) error {
	for _, name := range names {
		if _, err := watcher.WatchAll(context.Background(), d.c, d.typ, name, d.batch); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver[T]) Watch(name string, number int) error {
	handler := d.handler
	if number > 0 {
		handler = d.handlerOf(number)
	}
	w, err := watcher.Watch(context.Background(), d.c, d.typ, name, handler)
	if d.e.Work == kit.Cancel {
		d.watches[name] = w
	}
	return err
}

func (d *driver[T]) Cancel(name string) error {
	d.watches[name].Stop()
	return nil
}

func (d *driver[T]) Close() { _ = d.c.Close() }
