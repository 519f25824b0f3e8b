package bootstrap_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/grpc_service/channel_credentials/google_default/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/grpc_service/channel_credentials/insecure/v3"
	rawbufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// schemaRoots are where the messages of schema.txt begin; what they hold follows.
var schemaRoots = []proto.Message{
	&bootstrapv3.Bootstrap{}, &rawbufferv3.RawBuffer{}, &tlsv3.UpstreamTlsContext{}, &tlsv3.Secret{},
	&httpv3.HttpProtocolOptions{}, &discoveryv3.DiscoveryResponse{}, &discoveryv3.Resource{},
}

// schemaRead are the messages that this package reads.
const schemaRead = `
envoy.config.bootstrap.v3: Bootstrap Bootstrap.DynamicResources Bootstrap.StaticResources
envoy.config.core.v3: Node Locality BuildVersion ConfigSource ApiConfigSource PathConfigSource WatchedDirectory
envoy.config.core.v3: AggregatedConfigSource SelfConfigSource RateLimitSettings HeaderValue RetryPolicy BackoffStrategy
envoy.config.core.v3: GrpcService GrpcService.EnvoyGrpc GrpcService.GoogleGrpc GrpcService.GoogleGrpc.ChannelCredentials
envoy.config.core.v3: GrpcService.GoogleGrpc.SslCredentials GrpcService.GoogleGrpc.GoogleLocalCredentials
envoy.config.core.v3: DataSource Address SocketAddress Pipe TransportSocket Http2ProtocolOptions KeepaliveSettings
envoy.config.cluster.v3: Cluster Cluster.CustomClusterType
envoy.config.endpoint.v3: ClusterLoadAssignment LocalityLbEndpoints LbEndpoint Endpoint
envoy.extensions.transport_sockets.tls.v3: UpstreamTlsContext CommonTlsContext TlsParameters TlsCertificate Secret
envoy.extensions.transport_sockets.tls.v3: CommonTlsContext.CombinedCertificateValidationContext
envoy.extensions.transport_sockets.tls.v3: CertificateValidationContext SdsSecretConfig SubjectAltNameMatcher
envoy.extensions.transport_sockets.raw_buffer.v3: RawBuffer
envoy.extensions.upstreams.http.v3: HttpProtocolOptions HttpProtocolOptions.ExplicitHttpConfig HttpProtocolOptions.AutoHttpConfig
envoy.extensions.grpc_service.channel_credentials.insecure.v3: InsecureCredentials
envoy.extensions.grpc_service.channel_credentials.google_default.v3: GoogleDefaultCredentials
envoy.service.discovery.v3: DiscoveryResponse Resource
envoy.type.matcher.v3: StringMatcher
envoy.type.v3: SemanticVersion
xds.core.v3: Authority ContextParams
`

// schemaLate are fields whose messages are not read, or not yet: which one is, is known when
// it is found.
var schemaLate = map[protoreflect.FullName]bool{
	"envoy.config.bootstrap.v3.Bootstrap.StaticResources.clusters": true,
	"envoy.config.bootstrap.v3.Bootstrap.StaticResources.secrets":  true,
	"envoy.config.bootstrap.v3.Bootstrap.hds_config":               true,
	"envoy.config.cluster.v3.Cluster.lrs_server":                   true,
	"envoy.service.discovery.v3.DiscoveryResponse.resources":       true,
	"envoy.service.discovery.v3.Resource.resource":                 true,
}

// The table of fields is that of the messages of go-control-plane.
func TestSchema(t *testing.T) {
	read := map[protoreflect.FullName]bool{}
	for line := range strings.Lines(schemaRead) {
		pkg, names, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for name := range strings.FieldsSeq(names) {
			read[protoreflect.FullName(pkg+"."+name)] = true
		}
	}
	for _, root := range schemaRoots {
		if name := root.ProtoReflect().Descriptor().FullName(); !read[name] {
			t.Errorf("%s is no message that is read", name)
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(read)) {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			t.Fatal(name, err)
		}
		fmt.Fprintf(&b, "%s:%s\n", name, schemaFields(d.(protoreflect.MessageDescriptor), read))
	}
	const file = "schema.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(want)); diff != "" {
		t.Errorf("%s differs from the messages, -want +got (go test -run TestSchema -update rewrites it):\n%s", file, diff)
	}
}

// schemaFields are the fields of a message, each with the message that it holds if that is
// read, or "any".
func schemaFields(d protoreflect.MessageDescriptor, read map[protoreflect.FullName]bool) string {
	var b strings.Builder
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		fmt.Fprintf(&b, " %s", f.Name())
		held, kind := f.Message(), "="
		if f.IsMap() {
			held, kind = f.MapValue().Message(), "{}="
		}
		switch {
		case held == nil || schemaLate[f.FullName()]:
		case held.FullName() == "google.protobuf.Any":
			fmt.Fprintf(&b, "%sany", kind)
		case read[held.FullName()]:
			fmt.Fprintf(&b, "%s%s", kind, held.FullName())
		}
	}
	return b.String()
}
