package bootstrap

import (
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Source is who answers for resource names: servers, and the authorities whose names are
// theirs (envoy.config.core.v3.ConfigSource). The servers may be of different kinds, such
// as a file behind those that are reached over gRPC.
type Source struct {
	// Authorities as names have them when they are unescaped; none is empty or twice. A
	// source that is no default one and has none answers for names without authority only.
	Authorities []string
	// Servers in order of priority; the client falls back from one to the next (gRFC A71).
	// At least one is required.
	Servers []ManagementServer
	// FallbackOnReachabilityOnly is that of [Authority]; a ConfigSource cannot ask for it.
	FallbackOnReachabilityOnly bool
	// InitialFetchTimeout is how long a watch of this source waits for its first answer
	// until it is told that there is none yet (initial_fetch_timeout). 0 is no bound but that
	// of the client's ResourceTimeout; negative, as [WaitForever], is none at all, as in a
	// ConfigSource that says 0; one that leaves it out has 15 seconds.
	InitialFetchTimeout time.Duration
	// Notices of [Config.ConfigSource] are as those of a Config, which has them itself for
	// the sources that were read with it.
	Notices []string
}

func (s Source) clone() Source {
	s.Authorities = slices.Clone(s.Authorities)
	s.Servers = cloneServers(s.Servers)
	s.Notices = slices.Clone(s.Notices)
	return s
}

// copy is clone for a source that may be nil.
func (s *Source) copy() *Source {
	if s == nil {
		return nil
	}
	out := s.clone()
	return &out
}

// origin is what a Config keeps of the text that it was read from, so that more sources
// can refer to it.
type origin struct {
	source string
	opts   []Option
	static any // static_resources of an Envoy bootstrap; nil in gRPC's format
}

// peerName stands in errors for a ConfigSource that a program gave.
const peerName = "ConfigSource"

// ConfigSource understands a ConfigSource that the program brings along for a watch: a
// peer of a resource name, such as eds_config of a Cluster (xRFC TP1). Ads stands for the
// top-level servers, and self for those of [WithSelf], or else for the top-level ones too.
// An api_config_source of one of the AGGREGATED types shares a stream with all that goes to
// the same server; of type GRPC or DELTA_GRPC it has a stream for each resource type; of
// type REST its servers are polled. An envoy_grpc and cluster_names refer to the static
// clusters of the Envoy bootstrap that the Config was parsed from. Options are added to
// those of the parsing.
//
// A google_grpc is dialled wherever it points to. The client itself never does this with
// what a server sent, because a control plane must not lead it, and its credentials, to
// other servers (gRFC A47): a program that passes on received sources has to trust who
// sent them.
//
// The error joins all faults, each a [*FieldError] whose Source is "ConfigSource", or the
// bootstrap's where a static cluster is at fault, or a file's where a Secret is, which is
// read again as in [Parse]. It does not dial, and is safe for concurrent use.
func (c *Config) ConfigSource(cs *corev3.ConfigSource, opts ...Option) (Source, error) {
	from := c.origin
	if from == nil {
		from = &origin{source: "bootstrap.Config"}
	}
	o, err := newOptions(slices.Concat(from.opts, opts))
	if err != nil {
		return Source{}, err
	}
	if cs == nil {
		return Source{}, &FieldError{Source: peerName, Reason: "required"}
	}
	tree, err := configSourceTree(cs)
	if err != nil {
		return Source{}, err
	}
	boot := &document{source: from.source, opts: o, camel: true}
	static := field{doc: boot, path: "static_resources", val: from.static}
	d := &document{source: peerName, opts: o, servers: c.Servers, clusters: static.at("clusters").clusterIndex()}
	s := field{doc: d, val: tree}.peerSource()
	d.faults = append(d.faults, boot.faults...)
	if err := d.err(); err != nil {
		return Source{}, err
	}
	s.Notices = append(d.notices, boot.notices...)
	return s, nil
}

// peerSource reads the ConfigSource of a watch.
func (x field) peerSource() Source {
	s := Source{Authorities: x.at("authorities").authorityNames()}
	var v2 bool
	s.InitialFetchTimeout, v2 = x.sourceTerms()
	switch name, given := x.specifier(); name {
	case "ads":
		s.Servers = given.topServers()
	case "self":
		given.at("transport_api_version").apiVersion()
		if self := x.doc.opts.self; self != nil {
			s.Servers, s.FallbackOnReachabilityOnly = cloneServers(self.Servers), self.FallbackOnReachabilityOnly
		} else {
			s.Servers = given.topServers()
		}
	default:
		s.Servers = given.ownServers(name, v2)
	}
	return s
}

func (x field) topServers() []ManagementServer {
	if len(x.doc.servers) == 0 {
		x.fault("means the top-level servers, of which the bootstrap has none")
	}
	return cloneServers(x.doc.servers)
}

// configSourceTree is a ConfigSource in the form in which bootstraps are read.
func configSourceTree(cs *corev3.ConfigSource) (any, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true, Resolver: &hollowTypes{}}.Marshal(cs)
	if err != nil {
		return nil, &FieldError{Source: peerName, Reason: protoReason(err)}
	}
	return decodeJSON(peerName, text)
}

// hollowTypes makes every extension an empty message, so that those need not be linked in
// of which only the type is read.
type hollowTypes struct{ protoregistry.Types }

func (*hollowTypes) FindMessageByURL(string) (protoreflect.MessageType, error) {
	return (*emptypb.Empty)(nil).ProtoReflect().Type(), nil
}
