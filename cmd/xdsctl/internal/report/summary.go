package report

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

// summary says in a few words what is in a resource; "" for a type of which it knows
// nothing. Contents of secrets are never shown.
func summary(m proto.Message) string {
	switch m := m.(type) {
	case *clusterv3.Cluster:
		return cluster(m)
	case *endpointv3.ClusterLoadAssignment:
		return assignment(m)
	case *endpointv3.LbEndpoint:
		return strings.TrimSpace(address(m.GetEndpoint().GetAddress()) + " " + m.GetHealthStatus().String())
	case *listenerv3.Listener:
		return listener(m)
	case *routev3.RouteConfiguration:
		return routes(m)
	case *routev3.ScopedRouteConfiguration:
		return "routes " + m.GetRouteConfigurationName()
	case *routev3.VirtualHost:
		return fmt.Sprintf("%s, %s", strings.Join(m.GetDomains(), " "), count(len(m.GetRoutes()), "route", "routes"))
	case *tlsv3.Secret:
		return secret(m)
	case *runtimev3.Runtime:
		return count(len(m.GetLayer().GetFields()), "key", "keys")
	case *corev3.TypedExtensionConfig:
		return subscription.Short(m.GetTypedConfig().GetTypeUrl())
	}
	return ""
}

func cluster(c *clusterv3.Cluster) string {
	kind := c.GetType().String()
	if custom := c.GetClusterType(); custom != nil {
		kind = custom.GetName()
	}
	policy := c.GetLbPolicy().String()
	if ps := c.GetLoadBalancingPolicy().GetPolicies(); len(ps) > 0 {
		policy = subscription.Short(ps[0].GetTypedExtensionConfig().GetTypedConfig().GetTypeUrl())
	}
	text := kind + ", " + policy
	if name := c.GetEdsClusterConfig().GetServiceName(); name != "" {
		text += ", endpoints of " + name
	}
	return text
}

func assignment(a *endpointv3.ClusterLoadAssignment) string {
	endpoints, healthy := 0, 0
	for _, l := range a.GetEndpoints() {
		endpoints += len(l.GetLbEndpoints())
		for _, e := range l.GetLbEndpoints() {
			if h := e.GetHealthStatus(); h == corev3.HealthStatus_HEALTHY || h == corev3.HealthStatus_UNKNOWN {
				healthy++
			}
		}
	}
	text := count(endpoints, "endpoint", "endpoints")
	if healthy < endpoints {
		text += fmt.Sprintf(" (%d healthy)", healthy)
	}
	if n := len(a.GetEndpoints()); n > 1 {
		text += " in " + count(n, "locality", "localities")
	}
	return text
}

func listener(l *listenerv3.Listener) string {
	if api := l.GetApiListener().GetApiListener(); api != nil {
		return "api listener, " + subscription.Short(api.GetTypeUrl())
	}
	chains := len(l.GetFilterChains())
	if l.GetDefaultFilterChain() != nil {
		chains++
	}
	return strings.TrimPrefix(address(l.GetAddress())+", "+count(chains, "filter chain", "filter chains"), ", ")
}

func routes(r *routev3.RouteConfiguration) string {
	n := 0
	for _, vh := range r.GetVirtualHosts() {
		n += len(vh.GetRoutes())
	}
	return count(len(r.GetVirtualHosts()), "virtual host", "virtual hosts") + ", " + count(n, "route", "routes")
}

func secret(s *tlsv3.Secret) string {
	switch {
	case s.GetTlsCertificate() != nil:
		return "certificate"
	case s.GetValidationContext() != nil:
		return "validation context"
	case s.GetSessionTicketKeys() != nil:
		return "session ticket keys"
	case s.GetGenericSecret() != nil:
		return "generic secret"
	}
	return "empty"
}

func address(a *corev3.Address) string {
	switch {
	case a.GetSocketAddress() != nil:
		s := a.GetSocketAddress()
		port := s.GetNamedPort()
		if port == "" {
			port = fmt.Sprint(s.GetPortValue())
		}
		return s.GetAddress() + ":" + port
	case a.GetPipe() != nil:
		return a.GetPipe().GetPath()
	case a.GetEnvoyInternalAddress() != nil:
		return "internal " + a.GetEnvoyInternalAddress().GetServerListenerName()
	}
	return ""
}

// count writes a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
