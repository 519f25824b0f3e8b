package testutil

import (
	"context"
	"maps"
	"net/http"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// restTypes are the URLs of types by the paths that are polled (xDS protocol, "REST endpoints").
func restTypes() map[string]string {
	return map[string]string{
		resourcev3.FetchListeners:        resourcev3.ListenerType,
		resourcev3.FetchRoutes:           resourcev3.RouteType,
		resourcev3.FetchScopedRoutes:     resourcev3.ScopedRouteType,
		resourcev3.FetchClusters:         resourcev3.ClusterType,
		resourcev3.FetchEndpoints:        resourcev3.EndpointType,
		resourcev3.FetchSecrets:          resourcev3.SecretType,
		resourcev3.FetchRuntimes:         resourcev3.RuntimeType,
		resourcev3.FetchExtensionConfigs: resourcev3.ExtensionConfigType,
	}
}

// reply answers a poll from the state, at once or when there is news.
func (s *RESTServer) reply(w http.ResponseWriter, r *http.Request, p *RESTPoll) {
	if p.Request == nil || r.Method != http.MethodPost {
		http.Error(w, "not a DiscoveryRequest", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.config.Hold)
	defer cancel()
	var resp *discoveryv3.DiscoveryResponse
	code := http.StatusNotModified
	_ = s.news.await(ctx, context.Background(), func() bool { // an error is that there was no news
		resp, code = s.look(p)
		return code != http.StatusNotModified
	})
	switch code {
	case http.StatusOK:
		body, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(resp)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // to a client that may be gone
	case http.StatusNotModified:
		w.WriteHeader(code)
	default:
		http.Error(w, http.StatusText(code), code)
	}
}

// look gives the answer of the moment.
func (s *RESTServer) look(p *RESTPoll) (*discoveryv3.DiscoveryResponse, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	url, ok := restTypes()[p.Path]
	switch {
	case s.snapshot == nil:
		return nil, http.StatusInternalServerError
	case !ok:
		return nil, http.StatusNotFound
	}
	asked := p.Request.GetResourceNames()
	if p.Request.GetVersionInfo() == s.snapshot.GetVersion(url) && (s.config.ByVersion || slices.Equal(asked, s.asked[p.Path])) {
		return nil, http.StatusNotModified
	}
	s.asked[p.Path] = asked
	return restResponse(s.snapshot, url, asked), http.StatusOK
}

// restResponse holds what is asked for, or everything of a type that is always told whole.
func restResponse(from *cache.Snapshot, url string, asked []string) *discoveryv3.DiscoveryResponse {
	all := len(asked) == 0 || slices.Contains(asked, "*") || url == resourcev3.ListenerType || url == resourcev3.ClusterType
	resp := &discoveryv3.DiscoveryResponse{VersionInfo: from.GetVersion(url), TypeUrl: url}
	resources := from.GetResources(url)
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if all || slices.Contains(asked, name) {
			resp.Resources = append(resp.Resources, toAny(resources[name]))
		}
	}
	return resp
}
