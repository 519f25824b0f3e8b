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

// Source is the servers for some resource names, and the authorities of these names
// (envoy.config.core.v3.ConfigSource). The servers may be of different kinds, such as a file as
// fallback for servers over gRPC.
type Source struct {
	// Authorities are written unescaped; none is empty or listed twice. A source without any
	// that is no default one serves only names without authority.
	Authorities []string
	// Servers in order of priority; the client falls back from one to the next (gRFC A71).
	// At least one is required.
	Servers []ManagementServer
	// FallbackOnReachabilityOnly is that of [Authority]; a ConfigSource cannot ask for it.
	FallbackOnReachabilityOnly bool
	// InitialFetchTimeout is how long a watch of this source waits for its first answer until it
	// gets an event that there is none yet (initial_fetch_timeout). 0 is no bound but the
	// client's ResourceTimeout; negative, as [WaitForever], is no bound at all, as for a
	// ConfigSource with 0; a ConfigSource that leaves it out has 15 seconds.
	InitialFetchTimeout time.Duration
	// Notices of [Config.ConfigSource] are like those of a Config, which itself has the notices
	// of the sources that were read with it.
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

// ConfigSource reads a ConfigSource that the program has for a watch, beside a resource name,
// such as eds_config of a Cluster (xRFC TP1). Ads means the top-level servers; self means those
// of [WithSelf], or else the top-level ones too. An api_config_source of one of the AGGREGATED
// types shares a stream with everything else at the same server, and means ads if it names no
// services; one of type GRPC or DELTA_GRPC has a stream for each resource type; the client polls
// the servers of type REST. An envoy_grpc and cluster_names refer to the static clusters of the
// Envoy bootstrap that the Config was parsed from. The options apply beside those of the parsing.
//
// The client dials a google_grpc wherever it points to. The client never does so itself for a
// source that a server sent, because a control plane must not lead it, and its credentials, to
// other servers (gRFC A47): a program that passes on received sources must trust their sender.
//
// The error joins all faults, each a [*FieldError] whose Source is "ConfigSource", or the
// bootstrap's for a fault in a static cluster, or a file's for one in a Secret, which is read
// again as in [Parse]. The method does not dial, and is safe for concurrent use.
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
	boot.secrets = static.at("secrets")
	d := &document{source: peerName, opts: o, servers: c.Servers, clusters: static.at("clusters").clusterIndex()}
	s := field{doc: d, val: tree}.peerSource()
	d.faults = append(d.faults, boot.faults...)
	if err := d.err(); err != nil {
		return Source{}, err
	}
	s.Notices = told(peerName, append(d.notices, boot.notices...))
	return s, nil
}

// peerSource reads the ConfigSource of a watch.
func (x field) peerSource() Source {
	s := Source{Authorities: x.at("authorities").authorityNames()}
	var v2 bool
	s.InitialFetchTimeout, v2 = x.sourceTerms()
	switch name, given := x.ownSpecifier(); name {
	// CFG-1: ads and self mean servers of the bootstrap.
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
