package grpcresolver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/hold"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/circuit"
	"github.com/xdswatch/xdswatch/view/endpoint"
	"github.com/xdswatch/xdswatch/watcher"
)

// The schemes of targets, and the name of the load balancing policy.
const (
	Scheme    = "xdswatch"
	EDSScheme = "xdswatch-eds"
	Policy    = "xdswatch"
)

const serviceConfig = `{"loadBalancingConfig": [{"` + Policy + `": {}}]}`

var register = sync.OnceFunc(func() { balancer.Register(policyBuilder{}) })

// NewBuilder makes a builder for targets "xdswatch:///LISTENER", for [grpc.WithResolvers] or
// [resolver.Register]. Channels that use it share the client, which they do not close, and the
// limits of clusters (max_requests).
//
// The bootstrap's templates make the listener's name of the target, which without a template is the name itself. In
// "xdswatch://AUTHORITY/TARGET" they are those of an authority of the bootstrap, as in gRPC's own targets
// (ClientListenerName of a bootstrap.Config; gRFC A47).
//
// The first call in a program registers [Policy] with gRPC, whose registry is not safe for
// concurrent use: make it before channels are used.
//
// [grpc.WithResolvers]: https://pkg.go.dev/google.golang.org/grpc#WithResolvers
func NewBuilder(c *client.Client, opts ...Option) resolver.Builder {
	register()
	b := &listenerBuilder{client: c, breakers: &circuit.Breakers{}}
	for _, o := range opts {
		o(b)
	}
	return b
}

// Option is an option of [NewBuilder].
type Option func(*listenerBuilder)

// ReportLoad has RPCs counted and reported to the management servers whose clusters ask for it. An
// RPC fails that ends with another status than OK, as far as gRPC tells its policies: not one whose
// server ends it before the request was sent. [load.Guard] has the client refuse clusters
// that ask for reports to another server, as gRPC does.
func ReportLoad(r *load.Reporter) Option { return func(b *listenerBuilder) { b.load = r } }

// ShareBreakers has RPCs counted by b, for the limits of their clusters (max_requests; gRFC A32).
// Otherwise the channels of the builder share one count, and nobody else.
func ShareBreakers(b *circuit.Breakers) Option { return func(l *listenerBuilder) { l.breakers = b } }

// NewEDSBuilder makes a builder for targets "xdswatch-eds:///ASSIGNMENT", which is a name as it stands; see [NewBuilder].
func NewEDSBuilder(c *client.Client) resolver.Builder {
	register()
	return &edsBuilder{c}
}

// ended is what a channel holds of a resolver.
type ended struct{ stop func() }

// ResolveNow does nothing: changes are pushed.
func (e ended) ResolveNow(resolver.ResolveNowOptions) {}

func (e ended) Close() { e.stop() }

type listenerBuilder struct {
	client   *client.Client
	load     *load.Reporter
	breakers *circuit.Breakers
}

func (b *listenerBuilder) Scheme() string { return Scheme }

// Build does not wait for the configuration; RPCs do.
func (b *listenerBuilder) Build(target resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	r := &listenerResolver{channel: cc, breakers: b.breakers, plan: &plan{}, holds: map[string]*hold.Shared{}, loads: b.load.NewSet()}
	host := opts.Authority
	if host == "" {
		host = target.Endpoint()
	}
	name, err := b.client.Bootstrap().ClientListenerName(target.URL.Host, target.Endpoint())
	if err != nil {
		return nil, err
	}
	v, err := view.New(context.Background(), b.client, view.Root{Type: view.RootListener, Name: name, Host: host},
		view.Config{OnSnapshot: func(*view.Snapshot) { r.update() }})
	if err != nil {
		return nil, err
	}
	r.begin(v)
	return ended{func() { v.Stop(); r.close() }}, nil
}

type edsBuilder struct{ client *client.Client }

func (b *edsBuilder) Scheme() string { return EDSScheme }

// Build does not wait for endpoints; RPCs do.
func (b *edsBuilder) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	if authority := target.URL.Host; authority != "" {
		return nil, fmt.Errorf("an assignment of an authority has a structured name: %s:///xdstp://%s/%s/%s", EDSScheme, authority,
			strings.TrimPrefix(eds.Type.TypeURL(), resource.TypePrefix), target.Endpoint())
	}
	r := &edsResolver{cc, b.client}
	w, err := watcher.Watch(context.Background(), b.client, eds.Type, target.Endpoint(), r.update)
	if err != nil {
		return nil, err
	}
	return ended{w.Stop}, nil
}

// edsResolver passes on what its watch hears; it belongs to the watch's handler. Ambient errors
// change nothing: the endpoints that are held stay good.
type edsResolver struct {
	channel resolver.ClientConn
	client  *client.Client
}

func (r *edsResolver) update(ev watcher.Event[*endpointv3.ClusterLoadAssignment]) {
	l := &leaf{name: ev.Name}
	l.why = func(reason string) error {
		return fmt.Errorf("cluster %q: %s (node %q)", l.name, reason, r.client.NodeID())
	}
	fails := func(err error) { l.why = func(string) error { return err } }
	switch ev.Kind {
	case client.EventUpdated:
		l.set = endpoint.New(ev.Value, endpoint.Config{GRPC: true})
	case client.EventDoesNotExist:
		fails(&absence{ev.Name, ev.Reason})
	case client.EventFailed:
		fails(errors.New(ev.Err.Error())) // VIEW-28: its status would be that of RPCs
	case client.EventAmbientError, client.EventRecovered, client.EventSynced:
		return
	}
	publish(r.channel, &plan{clusters: map[string]*cluster{"": {members: []member{{leaf: l}}}}})
}
