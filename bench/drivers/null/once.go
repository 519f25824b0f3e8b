package main

import (
	"context"
	"errors"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bench/kit"
)

type (
	sotwStream  = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	deltaStream = discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
)

// once unmarshals everything once.
type once struct {
	e        *kit.Env
	cc       *grpc.ClientConn
	node     *corev3.Node
	watchers []func(name, stamp string)
	kept     map[string]any

	mu        sync.Mutex
	sotw      sotwStream
	delta     deltaStream
	names     []string
	versions  map[string]string // by name; nil if nobody will ask (delta)
	version   string
	nonce     string
	cancelled int
}

func newOnce(e *kit.Env, cc *grpc.ClientConn) *once {
	o := &once{e: e, cc: cc, node: &corev3.Node{Id: "bench"}, kept: map[string]any{}}
	if e.Work == kit.Reconnect && e.Variant == kit.Delta {
		o.versions = map[string]string{}
	}
	return o
}

func (o *once) Close() { _ = o.cc.Close() }

func (o *once) Subscribe(names []string) error {
	o.names = names
	o.add(0)
	return o.connect()
}

func (o *once) add(watcher int) {
	o.watchers = append(o.watchers, func(name, stamp string) { o.e.Deliver(name, watcher, stamp) })
}

func (o *once) connect() error {
	c := discoveryv3.NewAggregatedDiscoveryServiceClient(o.cc)
	if o.e.Variant == kit.Delta {
		return o.connectDelta(c)
	}
	ss, err := c.StreamAggregatedResources(context.Background(), grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sotw, o.nonce = ss, ""
	go o.receiveSotW(ss)
	return ss.Send(&discoveryv3.DiscoveryRequest{Node: o.node, TypeUrl: o.e.TypeURL(), ResourceNames: o.names, VersionInfo: o.version})
}

func (o *once) connectDelta(c discoveryv3.AggregatedDiscoveryServiceClient) error {
	ss, err := c.DeltaAggregatedResources(context.Background(), grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.delta = ss
	go o.receiveDelta(ss)
	return ss.Send(&discoveryv3.DeltaDiscoveryRequest{
		Node: o.node, TypeUrl: o.e.TypeURL(), ResourceNamesSubscribe: o.names, InitialResourceVersions: o.versions,
	})
}

func (o *once) Watch(name string, watcher int) error {
	if o.e.Work == kit.Fanout {
		o.add(watcher)
		if watcher < o.e.Watchers-1 {
			return nil
		}
		o.names = []string{name}
		return o.connect()
	}
	o.mu.Lock()
	o.names = append(o.names, name)
	first := len(o.names) == 1
	o.mu.Unlock()
	if first {
		o.add(watcher)
		return o.connect()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.delta == nil {
		return o.ask()
	}
	return o.delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: o.e.TypeURL(), ResourceNamesSubscribe: []string{name}})
}

// ask sends the names; with the lock.
func (o *once) ask() error {
	return o.sotw.Send(&discoveryv3.DiscoveryRequest{TypeUrl: o.e.TypeURL(), ResourceNames: o.names, VersionInfo: o.version, ResponseNonce: o.nonce})
}

func (o *once) Cancel(string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cancelled++; o.cancelled < o.e.N-1 {
		return nil
	}
	gone := o.names[:o.cancelled]
	o.names = o.names[o.cancelled:]
	if o.delta == nil {
		return o.ask()
	}
	return o.delta.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: o.e.TypeURL(), ResourceNamesUnsubscribe: gone})
}

func (o *once) receiveSotW(ss sotwStream) {
	for {
		m, err := ss.Recv()
		if err != nil {
			reconnect(o.e, o.connect)
			return
		}
		for _, a := range m.Resources {
			o.decode(a)
		}
		o.mu.Lock()
		o.nonce, o.version = m.Nonce, m.VersionInfo
		_ = o.ask() // Recv says why not
		o.mu.Unlock()
	}
}

func (o *once) receiveDelta(ss deltaStream) {
	for {
		m, err := ss.Recv()
		if err != nil {
			reconnect(o.e, o.connect)
			return
		}
		for _, r := range m.Resources {
			if r.Resource == nil {
				continue // a heartbeat
			}
			o.decode(r.Resource)
			if o.versions != nil {
				o.versions[r.Name] = r.Version
			}
		}
		o.mu.Lock()
		_ = ss.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: m.TypeUrl, ResponseNonce: m.Nonce}) // Recv says why not
		o.mu.Unlock()
	}
}

func (o *once) decode(a *anypb.Any) {
	name, stamp, m := unmarshal(a.TypeUrl, a.Value)
	switch o.e.Retain {
	case "bytes":
		o.kept[name] = a.Value
	case "proto":
		o.kept[name] = m
	}
	for _, w := range o.watchers {
		w(name, stamp)
	}
}

// unmarshal panics when the server did not send what it should.
func unmarshal(typeURL string, b []byte) (name, stamp string, m proto.Message) {
	switch typeURL {
	case kit.CDS:
		c := &clusterv3.Cluster{}
		must(proto.Unmarshal(b, c))
		return c.Name, c.AltStatName, c
	case kit.EDS:
		c := &endpointv3.ClusterLoadAssignment{}
		must(proto.Unmarshal(b, c))
		return c.ClusterName, c.Endpoints[0].LbEndpoints[0].GetEndpoint().Hostname, c
	}
	panic(errors.New(typeURL))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
