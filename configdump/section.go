package configdump

import (
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/updatestate"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/resource/srds"
)

// section is a part of the dump.
type section struct {
	message proto.Message // an empty one
	// field is the list of the resources, and typeURL their type; of the bootstrap it is the bootstrap itself.
	field, typeURL string
	versioned      bool // the section has the version of its resources
	endpoints      bool
	// element is a resource as it stands in the list; nil if it does not.
	element func(Resource) proto.Message
}

// sections are all, in Envoy's order.
var sections = []section{
	{message: &adminv3.BootstrapConfigDump{}, field: "bootstrap"},
	{message: &adminv3.ClustersConfigDump{}, field: "dynamic_active_clusters", typeURL: cds.Type.TypeURL(), versioned: true, element: inUse(
		func(r Resource) proto.Message {
			return &adminv3.ClustersConfigDump_DynamicCluster{
				VersionInfo: r.Version, Cluster: r.Content, LastUpdated: updatestate.Timestamp(r.Updated), ErrorState: r.Error, ClientStatus: r.Status,
			}
		})},
	{message: &adminv3.EcdsConfigDump{}, field: "ecds_filters", typeURL: ecds.Type.TypeURL(), element: inUse(
		func(r Resource) proto.Message {
			return &adminv3.EcdsConfigDump_EcdsFilterConfig{
				VersionInfo: r.Version, EcdsFilter: r.Content, LastUpdated: updatestate.Timestamp(r.Updated), ErrorState: r.Error, ClientStatus: r.Status,
			}
		})},
	{message: &adminv3.EndpointsConfigDump{}, field: "dynamic_endpoint_configs", typeURL: eds.Type.TypeURL(), endpoints: true, element: inUse(
		func(r Resource) proto.Message {
			return &adminv3.EndpointsConfigDump_DynamicEndpointConfig{
				VersionInfo: r.Version, EndpointConfig: r.Content, LastUpdated: updatestate.Timestamp(r.Updated), ErrorState: r.Error, ClientStatus: r.Status,
			}
		})},
	{message: &adminv3.ListenersConfigDump{}, field: "dynamic_listeners", typeURL: lds.Type.TypeURL(), versioned: true, element: listener},
	{message: &adminv3.ScopedRoutesConfigDump{}, field: "dynamic_scoped_route_configs", typeURL: srds.Type.TypeURL(), element: inUse(
		func(r Resource) proto.Message {
			return &adminv3.ScopedRoutesConfigDump_DynamicScopedRouteConfigs{
				Name: r.Name, VersionInfo: r.Version, ScopedRouteConfigs: []*anypb.Any{r.Content}, LastUpdated: updatestate.Timestamp(r.Updated),
				ErrorState: r.Error, ClientStatus: r.Status,
			}
		})},
	{message: &adminv3.RoutesConfigDump{}, field: "dynamic_route_configs", typeURL: rds.Type.TypeURL(), element: inUse(
		func(r Resource) proto.Message {
			return &adminv3.RoutesConfigDump_DynamicRouteConfig{
				VersionInfo: r.Version, RouteConfig: r.Content, LastUpdated: updatestate.Timestamp(r.Updated), ErrorState: r.Error, ClientStatus: r.Status,
			}
		})},
	{message: &adminv3.SecretsConfigDump{}, field: "dynamic_active_secrets", typeURL: sds.Type.TypeURL(), element: inUse(
		func(r Resource) proto.Message {
			return &adminv3.SecretsConfigDump_DynamicSecret{
				Name: r.Name, VersionInfo: r.Version, Secret: r.Content, LastUpdated: updatestate.Timestamp(r.Updated), ErrorState: r.Error, ClientStatus: r.Status,
			}
		})},
}

// inUse leaves out what has no content: readers look into each element.
func inUse(element func(Resource) proto.Message) func(Resource) proto.Message {
	return func(r Resource) proto.Message {
		if r.Content == nil {
			return nil
		}
		return element(r)
	}
}

// listener is a listener; also one that was only ever refused, which has a name beside its states.
func listener(r Resource) proto.Message {
	l := &adminv3.ListenersConfigDump_DynamicListener{Name: r.Name, ErrorState: r.Error, ClientStatus: r.Status}
	switch {
	case r.Content != nil:
		l.ActiveState = &adminv3.ListenersConfigDump_DynamicListenerState{
			VersionInfo: r.Version, Listener: r.Content, LastUpdated: updatestate.Timestamp(r.Updated),
		}
	case r.Error == nil:
		return nil
	}
	return l
}
