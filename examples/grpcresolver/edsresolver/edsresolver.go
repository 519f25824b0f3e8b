// Package edsresolver lets a gRPC channel find its servers by EDS: with the builder among
// a channel's resolvers, the target "eds:///backend" is the ClusterLoadAssignment
// "backend".
//
// It uses the healthy endpoints of the highest priority that has any. Weights of
// localities and endpoints, and the drop policy, are left to richer resolvers.
package edsresolver

import (
	"context"
	"fmt"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc/resolver"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/watcher"
)

// Scheme is the scheme of targets.
const Scheme = "eds"

// Builder makes resolvers that watch their endpoints with one client. It is safe for
// concurrent use, and does not close the client.
type Builder struct{ client *client.Client }

// NewBuilder makes a builder, for grpc.WithResolvers.
func NewBuilder(c *client.Client) *Builder { return &Builder{c} }

// Scheme implements [resolver.Builder].
func (b *Builder) Scheme() string { return Scheme }

// Build implements [resolver.Builder]. It does not wait for endpoints; RPCs do.
func (b *Builder) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	r := &edsResolver{channel: cc}
	w, err := watcher.Watch(context.Background(), b.client, eds.Type, target.Endpoint(), r.tell)
	if err != nil {
		return nil, err
	}
	return watching{w}, nil
}

// watching is what the channel holds of a resolver: its watch.
type watching struct{ watch *client.Watch }

// ResolveNow implements [resolver.Resolver]. There is nothing to do: endpoints are pushed.
func (w watching) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements [resolver.Resolver].
func (w watching) Close() { w.watch.Stop() }

// edsResolver tells a channel what its watch hears. It belongs to the watch's handler.
type edsResolver struct {
	channel resolver.ClientConn
	held    bool // the channel has endpoints
}

// tell ignores ambient errors: the endpoints that are held stay good.
func (r *edsResolver) tell(ev watcher.Event[*endpointv3.ClusterLoadAssignment]) {
	switch ev.Kind {
	case client.EventUpdated:
		r.held = true
		r.update(Usable(ev.Value))
	case client.EventDoesNotExist:
		r.fail(fmt.Errorf("endpoints %q do not exist (%v)", ev.Name, ev.Reason))
	case client.EventFailed:
		r.fail(ev.Err)
	}
}

// fail fails RPCs. An error alone would leave them on the endpoints that are gone.
func (r *edsResolver) fail(err error) {
	if r.held {
		r.held = false
		r.update(nil)
	}
	r.channel.ReportError(err)
}

func (r *edsResolver) update(endpoints []resolver.Endpoint) {
	// The error is the balancer's opinion of the endpoints. It would have a polling resolver
	// try again; here the server will send better ones.
	_ = r.channel.UpdateState(resolver.State{Endpoints: endpoints})
}
