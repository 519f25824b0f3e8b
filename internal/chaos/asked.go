package main

import (
	"maps"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// asked is what a stream asks for of a type.
type asked struct {
	names  map[string]bool // "*" among them
	legacy bool            // no name was ever sent, which means everything
}

// note follows what a request says.
func (s *brokenStream) note(message any) {
	if raw, ok := message.(*[]byte); ok {
		m := proto.Message(new(discoveryv3.DiscoveryRequest))
		if s.delta {
			m = new(discoveryv3.DeltaDiscoveryRequest)
		}
		if proto.Unmarshal(*raw, m) != nil {
			return // the server will say so
		}
		message = m
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	switch r := message.(type) {
	case *discoveryv3.DiscoveryRequest:
		a := s.askedOf(r.GetTypeUrl(), true)
		clear(a.names)
		a.add(r.GetResourceNames())
	case *discoveryv3.DeltaDiscoveryRequest:
		a := s.askedOf(r.GetTypeUrl(), len(r.GetResourceNamesSubscribe()) == 0)
		if a.legacy {
			a.names["*"] = true
			a.legacy = false
		}
		for _, n := range r.GetResourceNamesSubscribe() {
			a.names[n] = true
		}
		for _, n := range r.GetResourceNamesUnsubscribe() {
			delete(a.names, n)
		}
	}
}

// askedOf finds what is asked for of a type, or begins it.
func (s *brokenStream) askedOf(url string, legacy bool) *asked {
	a := s.asked[url]
	if a == nil {
		a = &asked{names: map[string]bool{}, legacy: legacy}
		s.asked[url] = a
	}
	return a
}

// add takes the list of a request in state of the world.
func (a *asked) add(names []string) {
	a.legacy = a.legacy && len(names) == 0
	if a.legacy {
		a.names["*"] = true
	}
	for _, n := range names {
		a.names[n] = true
	}
}

// asks lists, for each stream that stands, what is asked for there by type URL.
func (b *breaker) asks() (all []map[string][]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.streams {
		all = append(all, s.asks())
	}
	return all
}

func (s *brokenStream) asks() map[string][]string {
	s.asking.Lock()
	defer s.asking.Unlock()
	types := map[string][]string{}
	for url, a := range s.asked {
		if len(a.names) > 0 {
			types[url] = slices.Sorted(maps.Keys(a.names))
		}
	}
	return types
}
