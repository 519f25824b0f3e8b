// Package kratos lets services of go-kratos find each other through the endpoints (EDS) of a
// management server.
package kratos

import (
	"context"
	"strconv"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/go-kratos/kratos/v2/registry"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/view/endpoint"
	"github.com/xdswatch/xdswatch/watcher"
)

// Discovery is a [registry.Discovery]: a service's name is that of its assignment.
type Discovery struct {
	client *client.Client
	scheme string
}

// New makes one whose instances are reached by a scheme of kratos: "grpc" or "http", or "grpcs" or
// "https" with TLS. The program closes the client when all watchers are stopped.
func New(c *client.Client, scheme string) *Discovery { return &Discovery{client: c, scheme: scheme} }

// GetService waits for the server's answer. Of a service that does not exist it has no instances,
// and an error that wraps [client.ErrDoesNotExist].
func (d *Discovery) GetService(ctx context.Context, service string) ([]*registry.ServiceInstance, error) {
	a, err := watcher.Get(ctx, d.client, eds.Type, service)
	if err != nil {
		return nil, err
	}
	return d.instances(service, a), nil
}

// Watch subscribes to a service.
func (d *Discovery) Watch(ctx context.Context, service string) (registry.Watcher, error) {
	w := &watch{news: make(chan news, 1)}
	w.ctx, w.cancel = context.WithCancel(ctx)
	_, err := watcher.Watch(w.ctx, d.client, eds.Type, service, func(ev watcher.Event[*endpointv3.ClusterLoadAssignment]) {
		switch ev.Kind {
		case client.EventUpdated:
			w.tell(news{instances: d.instances(service, ev.Value)})
		case client.EventDoesNotExist:
			w.tell(news{}) // kratos keeps the instances that it has
		case client.EventFailed:
			w.tell(news{err: ev.Err}) // there is nothing yet, and why
		}
	})
	if err != nil {
		w.cancel()
		return nil, err
	}
	return w, nil
}

// instances are the endpoints that new requests may go to.
func (d *Discovery) instances(service string, a *endpointv3.ClusterLoadAssignment) (all []*registry.ServiceInstance) {
	set := endpoint.New(a, endpoint.Config{})
	first := set.Pick(0)
	if first == nil {
		return nil
	}
	for _, e := range set.Endpoints() {
		if e.Priority != first.Priority {
			continue
		}
		all = append(all, &registry.ServiceInstance{
			ID: e.Address.Addr, Name: service, Endpoints: []string{d.scheme + "://" + e.Address.Addr},
			Metadata: map[string]string{
				"weight": strconv.Itoa(int(e.Weight)), // which kratos' balancers read
				"region": e.Locality.GetLocality().GetRegion(),
				"zone":   e.Locality.GetLocality().GetZone(),
			},
		})
	}
	return all
}

// watch is a [registry.Watcher].
type watch struct {
	ctx    context.Context
	cancel context.CancelFunc
	news   chan news // the newest, of one handler
}

type news struct {
	instances []*registry.ServiceInstance
	err       error
}

// tell replaces what was not fetched. It does not block.
func (w *watch) tell(n news) {
	select {
	case <-w.news:
	default:
	}
	w.news <- n
}

// Next blocks until something changed.
func (w *watch) Next() ([]*registry.ServiceInstance, error) {
	select {
	case n := <-w.news:
		return n.instances, n.err
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	}
}

func (w *watch) Stop() error {
	w.cancel()
	return nil
}
