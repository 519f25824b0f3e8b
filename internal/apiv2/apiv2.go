// Package apiv2 stands between a stream of version 2 of the xDS transport and everything
// above, which knows of version 3 alone. The messages of the two are compatible on the wire
// (gRFC A30), so it maps gRPC methods, type URLs and one field of the Node, and looks into
// no resource: type URLs inside a resource stay as they are.
package apiv2

import (
	"bytes"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/internal/wire"
)

const prefix = "type.googleapis.com/"

// Type URLs of resources that both versions have.
const (
	listenerV2    = prefix + "envoy.api.v2.Listener"
	routeV2       = prefix + "envoy.api.v2.RouteConfiguration"
	scopedRouteV2 = prefix + "envoy.api.v2.ScopedRouteConfiguration"
	virtualHostV2 = prefix + "envoy.api.v2.route.VirtualHost"
	clusterV2     = prefix + "envoy.api.v2.Cluster"
	endpointsV2   = prefix + "envoy.api.v2.ClusterLoadAssignment"
	secretV2      = prefix + "envoy.api.v2.auth.Secret"
	runtimeV2     = prefix + "envoy.service.discovery.v2.Runtime"

	listenerV3    = prefix + "envoy.config.listener.v3.Listener"
	routeV3       = prefix + "envoy.config.route.v3.RouteConfiguration"
	scopedRouteV3 = prefix + "envoy.config.route.v3.ScopedRouteConfiguration"
	virtualHostV3 = prefix + "envoy.config.route.v3.VirtualHost"
	clusterV3     = prefix + "envoy.config.cluster.v3.Cluster"
	endpointsV3   = prefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	secretV3      = prefix + "envoy.extensions.transport_sockets.tls.v3.Secret"
	runtimeV3     = prefix + "envoy.service.runtime.v3.Runtime"
)

// ToV2 is the version 2 form of a type URL. One that has none, such as that of a program's
// own type, is the same in both.
func ToV2(url string) string {
	switch url {
	case listenerV3:
		return listenerV2
	case routeV3:
		return routeV2
	case scopedRouteV3:
		return scopedRouteV2
	case virtualHostV3:
		return virtualHostV2
	case clusterV3:
		return clusterV2
	case endpointsV3:
		return endpointsV2
	case secretV3:
		return secretV2
	case runtimeV3:
		return runtimeV2
	}
	return url
}

// ToV3 is the version 3 form of a type URL; one that is none of version 2 stays as it is.
func ToV3(url string) string {
	switch url {
	case listenerV2:
		return listenerV3
	case routeV2:
		return routeV3
	case scopedRouteV2:
		return scopedRouteV3
	case virtualHostV2:
		return virtualHostV3
	case clusterV2:
		return clusterV3
	case endpointsV2:
		return endpointsV3
	case secretV2:
		return secretV3
	case runtimeV2:
		return runtimeV3
	}
	return url
}

// Resolver finds the types of messages.
type Resolver interface {
	protoregistry.MessageTypeResolver
	protoregistry.ExtensionTypeResolver
}

// Types has resources of version 2 that another resolver does not know read as those of
// version 3, whose fields have the same names and numbers. It knows no message inside of one.
type Types struct{ Resolver }

// FindMessageByURL is documented at protoregistry.MessageTypeResolver.
func (t Types) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	mt, err := t.Resolver.FindMessageByURL(url)
	if v3 := ToV3(url); err == protoregistry.NotFound && v3 != url {
		return t.Resolver.FindMessageByURL(v3)
	}
	return mt, err
}

// BuildVersion is what [Node] gave a node of version 3, which has no field for it.
// V2-3: the build version stands in place of the user agent.
func BuildVersion(node *corev3.Node) string {
	build, _, _ := wire.StringField(node.ProtoReflect().GetUnknown(), nodeBuildVersion)
	return string(build)
}

// Method is the version 2 form of a gRPC method; "" if version 2 has no such service. A
// method of a service that is not Envoy's is the same in both.
// V2-2: version 2 has methods of its own.
func Method(v3 string) string {
	service, method, _ := strings.Cut(strings.TrimPrefix(v3, "/"), "/")
	last := service[strings.LastIndexByte(service, '.')+1:]
	switch service {
	case "envoy.service.listener.v3.ListenerDiscoveryService",
		"envoy.service.route.v3.RouteDiscoveryService",
		"envoy.service.route.v3.ScopedRoutesDiscoveryService",
		"envoy.service.route.v3.VirtualHostDiscoveryService",
		"envoy.service.cluster.v3.ClusterDiscoveryService",
		"envoy.service.endpoint.v3.EndpointDiscoveryService":
		return "/envoy.api.v2." + last + "/" + method
	case "envoy.service.discovery.v3.AggregatedDiscoveryService",
		"envoy.service.secret.v3.SecretDiscoveryService",
		"envoy.service.runtime.v3.RuntimeDiscoveryService":
		return "/envoy.service.discovery.v2." + last + "/" + method
	}
	if strings.HasPrefix(service, "envoy.service.") && strings.Contains(service, ".v3.") {
		return ""
	}
	return v3
}

// Request maps the type URL of a DiscoveryRequest, or DeltaDiscoveryRequest, in parts. It
// stands whole in the first of them. Nothing is modified; what does not change is shared.
func Request(msg [][]byte, delta bool) [][]byte {
	head, url, tail := wire.CutTypeURL(msg[0], delta)
	// V2-2: version 2 has type URLs of its own.
	to := ToV2(url)
	if to == url {
		return msg
	}
	return slices.Concat([][]byte{wire.AppendTypeURL(slices.Clip(head), to, delta), tail}, msg[1:])
}

// Response maps the type URLs of a response and of its entries, in wrappers too, whichever
// version each is of: a server may have resources of one version on the transport of the
// other (gRFC A30). A wrapper inside a wrapper is no entry of either.
// V2-1: the response is read as one of version 3.
func Response(r *wire.Response) {
	r.TypeURL = ToV3(r.TypeURL)
	var from, to []byte // of the last entry; as a rule all are of one type
	for i := range r.Resources {
		e := &r.Resources[i]
		if !bytes.Equal(e.TypeURL, from) {
			from, to = e.TypeURL, e.TypeURL
			if url := ToV3(string(from)); url != string(from) {
				to = []byte(url)
			}
		}
		e.TypeURL = to
	}
}

// Fields of a Node. Version 2 alone has build_version.
const (
	nodeBuildVersion     = 5
	nodeUserAgentName    = 6
	nodeUserAgentVersion = 7
)

// Node gives an encoded Node of version 3 the build_version that servers of version 2 may
// look at (gRFC A30): user_agent_name and user_agent_version with a slash between them. A
// node that has one already, or no user agent, stays as it is. It modifies nothing.
func Node(node []byte) []byte {
	_, has, err := wire.StringField(node, nodeBuildVersion)
	if err != nil || has {
		return node
	}
	name, _, _ := wire.StringField(node, nodeUserAgentName)
	version, _, _ := wire.StringField(node, nodeUserAgentVersion)
	if len(name) == 0 {
		return node
	}
	build := name
	if len(version) > 0 {
		build = slices.Concat(name, []byte("/"), version)
	}
	b := protowire.AppendTag(slices.Clip(node), nodeBuildVersion, protowire.BytesType)
	return protowire.AppendBytes(b, build)
}
