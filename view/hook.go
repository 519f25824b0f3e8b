package view

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/sds"
)

// Need says what a resource means for the message that names it.
type Need uint8

// The needs.
const (
	// Optional resources are watched and never waited for.
	Optional Need = iota
	// Required ones are waited for; an error is told with the resource.
	Required
	// Essential ones are waited for, and their error is an error of the cluster, or of the root,
	// that leads to them.
	Essential
)

// Dependency is a resource that a message names. It may be a Cluster: then it is one of
// [Snapshot.Clusters], with all that belongs to it, from where the view has its clusters, and an error
// stays its own. It cannot be of another type that the view finds itself (listeners, routes,
// assignments). Hooks look into the resources that they find too, eight deep; what those name is needed
// no more than they are.
type Dependency struct {
	Type   resource.AnyType
	Name   string
	Source *corev3.ConfigSource // nil and ads are the view's own servers, self is the message's
	Need   Need
}

// Hook finds the resources that messages of one type name. The view opens each Any of a type that
// the program links, sixteen deep, in listeners, route configurations, clusters and extension
// configurations, and calls Find for each message of the hook's type in them. With Root.Host these are
// without other virtual hosts than the chosen one, and without a listener's filter chains.
type Hook struct {
	// Message is an example of the message: (*tlsv3.UpstreamTlsContext)(nil).
	Message proto.Message
	// Find calls add for each resource that m names. It must not change m, nor keep it, nor
	// block.
	Find func(m proto.Message, add func(Dependency))
}

// Extensions are the hooks for extension configurations (ECDS, draft gRFC A104), which every view
// has: HTTP filters with a config_discovery are waited for, and essential unless they have a
// default or are optional. With apply_default_config_without_warming the default is used until the
// configuration is there, which is not waited for.
func Extensions() []Hook {
	return []Hook{{(*hcmv3.HttpFilter)(nil), func(m proto.Message, add func(Dependency)) { // VIEW-41
		f := m.(*hcmv3.HttpFilter)
		d := f.GetConfigDiscovery()
		if d == nil {
			return
		}
		need := Essential
		switch hasDefault := d.GetDefaultConfig() != nil; {
		case hasDefault && d.GetApplyDefaultConfigWithoutWarming():
			need = Optional
		case hasDefault || f.GetIsOptional():
			need = Required
		}
		add(Dependency{ecds.Type, f.GetName(), d.GetConfigSource(), need})
	}}}
}

// Secrets are the hooks for the Secrets (SDS) of TLS contexts. Clusters and listeners wait for
// them, as in Envoy, and can be used without them: see [Snapshot.Resource]. Secrets without a
// config source are the program's own.
func Secrets() []Hook {
	return []Hook{{(*tlsv3.SdsSecretConfig)(nil), func(m proto.Message, add func(Dependency)) { // WARM-k
		s := m.(*tlsv3.SdsSecretConfig)
		if s.GetSdsConfig() != nil && s.GetName() != "" {
			add(Dependency{sds.Type, s.GetName(), s.GetSdsConfig(), Required})
		}
	}}}
}
