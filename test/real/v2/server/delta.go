package main

import (
	"maps"
	"slices"
	"strconv"

	api "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v2"
	"google.golang.org/protobuf/types/known/anypb"
)

// DeltaAggregatedResources serves what is asked for.
func (s *server) DeltaAggregatedResources(gs discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.delta(gs, "")
}

// DeltaClusters serves clusters.
func (s *server) DeltaClusters(gs api.ClusterDiscoveryService_DeltaClustersServer) error {
	return s.delta(gs, resource.ClusterType)
}

// DeltaEndpoints serves endpoints.
func (s *server) DeltaEndpoints(gs api.EndpointDiscoveryService_DeltaEndpointsServer) error {
	return s.delta(gs, resource.EndpointType)
}

type deltaStream interface {
	Send(*api.DeltaDiscoveryResponse) error
	Recv() (*api.DeltaDiscoveryRequest, error)
}

// subscription is a type on a stream.
type subscription struct {
	wildcard bool
	names    map[string]bool
	sent     map[string]string // versions
}

func (s *server) delta(gs deltaStream, typeURL string) error {
	requests, fault := make(chan *api.DeltaDiscoveryRequest), make(chan error, 1)
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			req, err := gs.Recv()
			if err != nil {
				fault <- err
				return
			}
			select {
			case requests <- req:
			case <-over:
				return
			}
		}
	}()
	subs := map[string]*subscription{}
	for nonce := 1; ; {
		_, changed := s.state.of("")
		for _, url := range slices.Sorted(maps.Keys(subs)) {
			resp := subs[url].difference(s.state, url)
			if resp == nil {
				continue
			}
			resp.Nonce, resp.TypeUrl = strconv.Itoa(nonce), url
			if s.untyped {
				resp.TypeUrl = ""
			}
			nonce++
			if err := gs.Send(resp); err != nil {
				return err
			}
		}
		select {
		case req := <-requests:
			url := typeURL
			if url == "" {
				url = req.TypeUrl
			}
			if subs[url] == nil {
				subs[url] = newSubscription(req)
			}
			subs[url].change(req)
		case <-changed:
		case err := <-fault:
			return err
		}
	}
}

// newSubscription: a first request without names is a wildcard.
func newSubscription(req *api.DeltaDiscoveryRequest) *subscription {
	sent := req.InitialResourceVersions
	if sent == nil {
		sent = map[string]string{}
	}
	return &subscription{wildcard: len(req.ResourceNamesSubscribe) == 0, names: map[string]bool{}, sent: sent}
}

func (sub *subscription) change(req *api.DeltaDiscoveryRequest) {
	for _, name := range req.ResourceNamesSubscribe {
		sub.names[name] = true
	}
	for _, name := range req.ResourceNamesUnsubscribe {
		delete(sub.names, name)
		delete(sub.sent, name)
	}
}

// difference is what a subscriber has to be told; nil for nothing.
func (sub *subscription) difference(s *state, url string) *api.DeltaDiscoveryResponse {
	all, _ := s.of(url)
	resp := &api.DeltaDiscoveryResponse{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		if !sub.wildcard && !sub.names[name] || sub.sent[name] == v.version {
			continue
		}
		body, err := anypb.New(v.body)
		if err != nil {
			panic(err) // it was made here
		}
		resp.Resources = append(resp.Resources, &api.Resource{Name: name, Version: v.version, Resource: body})
		sub.sent[name] = v.version
	}
	for _, name := range slices.Sorted(maps.Keys(sub.sent)) {
		if _, ok := all[name]; !ok {
			resp.RemovedResources = append(resp.RemovedResources, name)
			delete(sub.sent, name)
		}
	}
	if len(resp.Resources)+len(resp.RemovedResources) == 0 {
		return nil
	}
	return resp
}
