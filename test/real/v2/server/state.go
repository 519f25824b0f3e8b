package main

import (
	"fmt"
	"strings"
	"sync"

	api "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	auth "github.com/envoyproxy/go-control-plane/envoy/api/v2/auth"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v2"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// node is the id of the nodes that are served.
const node = "node"

// versioned is a resource with the version of the state that it last changed with.
type versioned struct {
	version string
	body    proto.Message
}

// state is what delta serves, by type URL and name.
type state struct {
	mu      sync.Mutex
	all     map[string]map[string]versioned
	changed chan struct{} // closed with the next change
}

func newState() *state {
	return &state{all: map[string]map[string]versioned{}, changed: make(chan struct{})}
}

// of gives the resources of a type, which nobody modifies, and what tells of a change.
func (s *state) of(typeURL string) (map[string]versioned, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[typeURL], s.changed
}

func (s *state) set(version string, all map[string]map[string]proto.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.all
	s.all = map[string]map[string]versioned{}
	for url, bodies := range all {
		s.all[url] = map[string]versioned{}
		for name, body := range bodies {
			v := versioned{version, body}
			if was, ok := old[url][name]; ok && proto.Equal(was.body, body) {
				v = was
			}
			s.all[url][name] = v
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// set takes a line of input for the new state of both variants.
func (s *server) set(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("an empty line")
	}
	all := map[string]map[string]proto.Message{}
	lists := map[string][]types.Resource{}
	for _, word := range words[1:] {
		short, rest, _ := strings.Cut(word, ":")
		name, text, _ := strings.Cut(rest, "=")
		url, body := makeResource(short, name, text)
		if body == nil {
			return fmt.Errorf("%q: no such type", word)
		}
		if all[url] == nil {
			all[url] = map[string]proto.Message{}
		}
		all[url][name] = body.(proto.Message)
		lists[url] = append(lists[url], body)
	}
	s.state.set(words[0], all)
	return s.cache.SetSnapshot(node, cache.NewSnapshot(words[0],
		lists[resource.EndpointType], lists[resource.ClusterType], lists[resource.RouteType],
		lists[resource.ListenerType], lists[resource.RuntimeType], lists[resource.SecretType]))
}

func makeResource(short, name, text string) (string, types.Resource) {
	switch short {
	case "cds":
		c := &api.Cluster{Name: name, AltStatName: text, ConnectTimeout: durationpb.New(1)}
		if text == "!" {
			c.ConnectTimeout = durationpb.New(-1)
		}
		return resource.ClusterType, c
	case "eds":
		return resource.EndpointType, &api.ClusterLoadAssignment{ClusterName: name}
	case "lds":
		return resource.ListenerType, &api.Listener{Name: name}
	case "rds":
		return resource.RouteType, &api.RouteConfiguration{Name: name}
	case "sds":
		return resource.SecretType, &auth.Secret{Name: name}
	case "rtds":
		return resource.RuntimeType, &discovery.Runtime{Name: name}
	}
	return "", nil
}
