package testutil

import (
	"net/http"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// restState is what a server has of one type.
type restState struct {
	typeURL string
	version string
	names   []string // sorted
	byName  map[string]proto.Message
	asked   []string // by the last poll that was answered in full
}

// restPaths are the paths that are polled (xDS protocol, "REST endpoints").
func restPaths() map[string]string {
	return map[string]string{
		resourcev3.ListenerType:        resourcev3.FetchListeners,
		resourcev3.RouteType:           resourcev3.FetchRoutes,
		resourcev3.ScopedRouteType:     resourcev3.FetchScopedRoutes,
		resourcev3.ClusterType:         resourcev3.FetchClusters,
		resourcev3.EndpointType:        resourcev3.FetchEndpoints,
		resourcev3.SecretType:          resourcev3.FetchSecrets,
		resourcev3.RuntimeType:         resourcev3.FetchRuntimes,
		resourcev3.ExtensionConfigType: resourcev3.FetchExtensionConfigs,
	}
}

// restStates sorts what is in a snapshot by path.
func restStates(snapshot *cache.Snapshot, resources []proto.Message) (map[string]*restState, error) {
	states := map[string]*restState{}
	total := 0
	for url, path := range restPaths() {
		st := &restState{typeURL: url, version: snapshot.GetVersion(url), byName: map[string]proto.Message{}}
		for name, r := range snapshot.GetResources(url) {
			st.byName[name] = r
			st.names = append(st.names, name)
		}
		slices.Sort(st.names)
		states[path] = st
		total += len(st.names)
	}
	if total < len(resources) {
		return nil, errNoPath
	}
	return states, nil
}

// reply answers a poll from the state, at once or when there is news.
func (s *RESTServer) reply(w http.ResponseWriter, r *http.Request, p *RESTPoll) {
	if p.Request == nil || r.Method != http.MethodPost {
		http.Error(w, "not a DiscoveryRequest", http.StatusBadRequest)
		return
	}
	deadline := time.NewTimer(s.config.Hold)
	defer deadline.Stop()
	for {
		resp, code, changed := s.look(p)
		if code != http.StatusNotModified {
			s.write(w, resp, code)
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			w.WriteHeader(code)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// look gives the answer of the moment.
func (s *RESTServer) look(p *RESTPoll) (resp *discoveryv3.DiscoveryResponse, code int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state[p.Path]
	if st == nil && len(s.state) > 0 {
		return nil, http.StatusNotFound, nil
	}
	if st == nil {
		return nil, http.StatusInternalServerError, nil
	}
	asked := p.Request.GetResourceNames()
	if p.Request.GetVersionInfo() == st.version && (s.config.ByVersion || slices.Equal(asked, st.asked)) {
		return nil, http.StatusNotModified, s.changed
	}
	st.asked = asked
	return st.response(asked), http.StatusOK, nil
}

// response holds what is asked for, or everything of a type that is always told whole.
func (st *restState) response(asked []string) *discoveryv3.DiscoveryResponse {
	all := len(asked) == 0 || slices.Contains(asked, "*") ||
		st.typeURL == resourcev3.ListenerType || st.typeURL == resourcev3.ClusterType
	resp := &discoveryv3.DiscoveryResponse{VersionInfo: st.version, TypeUrl: st.typeURL}
	for _, name := range st.names {
		if !all && !slices.Contains(asked, name) {
			continue
		}
		if a, err := anypb.New(st.byName[name]); err == nil { // no message of a snapshot has a fault
			resp.Resources = append(resp.Resources, a)
		}
	}
	return resp
}

func (s *RESTServer) write(w http.ResponseWriter, resp *discoveryv3.DiscoveryResponse, code int) {
	if resp == nil {
		http.Error(w, http.StatusText(code), code)
		return
	}
	body, err := protojson.MarshalOptions{UseProtoNames: !s.config.CamelCase}.Marshal(resp)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // to a client that may be gone
}
