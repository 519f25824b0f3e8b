package testutil

import (
	"context"
	"errors"
	"fmt"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/config"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/wellknown"
)

// ErrUnsupportedType is the error of a resource of a type that a server does not know.
var ErrUnsupportedType = errors.New("type is not supported by the server")

// newSnapshot sorts resources by type. Every type gets the version, so that the last
// resource of a type can go.
func newSnapshot(version string, resources []proto.Message) (*cache.Snapshot, error) {
	s := new(cache.Snapshot)
	for t := range s.Resources {
		s.Resources[t] = cache.NewResources(version, nil)
	}
	for _, r := range resources {
		url := resource.TypePrefix + string(r.ProtoReflect().Descriptor().FullName())
		t := cache.GetResponseType(url)
		if t == types.UnknownType {
			return nil, fmt.Errorf("snapshot %q: %s: %w", version, url, ErrUnsupportedType)
		}
		s.Resources[t].Items[cache.GetResourceName(r)] = types.ResourceWithTTL{Resource: r}
	}
	return s, nil
}

type (
	sotwStream  = grpc.GenericServerStream[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
	deltaStream = grpc.GenericServerStream[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
)

// serveCache makes a handler of streams that serves a cache, until ctx ends. The methods are not
// taken from go-control-plane's server package, because that one needs the module of the rate
// limit service; the servers behind are the same.
func serveCache(ctx context.Context, c cache.Cache, ordered bool) grpc.StreamHandler {
	var opts []config.XDSOption
	if ordered {
		opts = append(opts, sotw.WithOrderedADS())
	}
	full := sotw.NewServer(ctx, c, nil, opts...)
	incremental := delta.NewServer(ctx, c, nil, opts...)
	methods := methods()
	return func(_ any, gs grpc.ServerStream) error {
		name, _ := grpc.MethodFromServerStream(gs)
		typeURL, ok := methods[name]
		switch {
		case !ok || typeURL != resourcev3.AnyType && cache.GetResponseType(typeURL) == types.UnknownType:
			return status.Errorf(codes.Unimplemented, "no method %s", name)
		case isDelta(name):
			return incremental.DeltaStreamHandler(&deltaStream{ServerStream: gs}, typeURL)
		}
		return full.StreamHandler(&sotwStream{ServerStream: gs}, typeURL)
	}
}

// Methods of the aggregated service.
const (
	aggregatedSotW  = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName
	aggregatedDelta = discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName
)

// methods are those of the aggregated service and of the well-known types, with the URL of the
// type; "" of the aggregated service.
func methods() map[string]string {
	methods := map[string]string{aggregatedSotW: "", aggregatedDelta: ""}
	for _, e := range wellknown.All() {
		sotw, delta := e.Kind.Methods()
		methods[sotw], methods[delta] = e.Kind.TypeURL(), e.Kind.TypeURL()
	}
	delete(methods, "")
	return methods
}

// isDelta says whether a method is of the delta variant, by its name.
func isDelta(method string) bool {
	return strings.HasPrefix(method[strings.LastIndexByte(method, '/')+1:], "Delta")
}
