package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/credentials"
)

// Types of credentials that gRPC's bootstrap format knows (gRFC A27, A65, A97).
const (
	credsInsecure      = "insecure"
	credsTLS           = "tls"
	credsGoogleDefault = "google_default"
	credsJWTTokenFile  = "jwt_token_file"
)

// Option changes how a bootstrap is read.
type Option func(*options)

type (
	buildChannel = func(config json.RawMessage) (credentials.Bundle, error)
	buildCall    = func(config json.RawMessage) (credentials.PerRPCCredentials, error)
)

type options struct {
	channel map[string]buildChannel
	call    map[string]buildCall
	v2      bool
	// nextChannel lets the next of channel_creds stand for one that cannot be made.
	nextChannel bool
	// unverified lets an Envoy TLS context without a trusted CA stand for no verification.
	unverified bool
	self       *Source // nil: the top-level servers
	errs       []error
}

// WithChannelCreds defines a type of channel credential beside "insecure" and "tls", such as
// "google_default". build gets the entry's config as compact JSON, nil if there is none. It is
// called when a connection to the server is set up, never while the bootstrap is read, and its
// error is a fault of the configuration.
func WithChannelCreds(typ string, build func(config json.RawMessage) (credentials.Bundle, error)) Option {
	return func(o *options) {
		switch {
		case typ == credsInsecure || typ == credsTLS:
			o.errs = append(o.errs, fmt.Errorf("bootstrap.WithChannelCreds: type %q is built in", typ))
		case typ == "" || build == nil:
			o.errs = append(o.errs, fmt.Errorf("bootstrap.WithChannelCreds: type %q: want a type and a function", typ))
		default:
			o.channel[typ] = build
		}
	}
}

// WithCallCreds defines a type of call credential beside "jwt_token_file" (gRFC A97). build is
// called as that of [WithChannelCreds].
func WithCallCreds(typ string, build func(config json.RawMessage) (credentials.PerRPCCredentials, error)) Option {
	return func(o *options) {
		switch {
		case typ == credsJWTTokenFile:
			o.errs = append(o.errs, fmt.Errorf("bootstrap.WithCallCreds: type %q is built in", typ))
		case typ == "" || build == nil:
			o.errs = append(o.errs, fmt.Errorf("bootstrap.WithCallCreds: type %q: want a type and a function", typ))
		default:
			o.call[typ] = build
		}
	}
}

// AllowV2 lets an Envoy bootstrap, or a ConfigSource, ask for version 2 of the xDS protocol,
// which current Envoys refuse and which is a fault otherwise: transport_api_version V2 sets
// ManagementServer.TransportV2, and resource_api_version V2 sets it for a file. AUTO still means
// version 3. A resource_api_version V2 elsewhere is then no fault, and has no effect: the client
// subscribes by the type URLs of the transport's version, and on a transport of version 2
// accepts those of either (envoy.config.core.v3.ApiVersion, gRFC A30).
func AllowV2() Option { return func(o *options) { o.v2 = true } }

// AllowNextChannelCreds lets an entry of channel_creds (of channel_credentials_plugin in Envoy's
// format) replace those before it that gRPC defines and this program cannot make, such as
// "google_default" without its option. Without the option that is a fault, since the next entry
// is often "insecure". Each skipped entry is a notice.
func AllowNextChannelCreds() Option { return func(o *options) { o.nextChannel = true } }

// AllowUnverifiedTLS gives an Envoy TLS context without a trusted CA the meaning that it has in
// Envoy: the client does not verify the server's certificate, whoever issued it. Without the
// option that is a fault. A bootstrap can ask for the same by `trust_chain_verification:
// ACCEPT_UNTRUSTED`.
func AllowUnverifiedTLS() Option { return func(o *options) { o.unverified = true } }

// WithSelf gives the source that a ConfigSource read by [Config.ConfigSource] came from, such as
// the source of the Cluster that holds it: `self` means its servers. It has no effect on the
// reading of a bootstrap.
func WithSelf(s Source) Option {
	return func(o *options) {
		if len(s.Servers) == 0 {
			o.errs = append(o.errs, errors.New("bootstrap.WithSelf: the source has no servers"))
			return
		}
		o.self = &s
	}
}

func newOptions(opts []Option) (*options, error) {
	o := &options{channel: map[string]buildChannel{}, call: map[string]buildCall{}}
	for _, opt := range opts {
		opt(o)
	}
	return o, errors.Join(o.errs...)
}

// channelTypes are the known types of channel credentials, in a stable order.
func (o *options) channelTypes() []string {
	return append([]string{credsInsecure, credsTLS}, slices.Sorted(maps.Keys(o.channel))...)
}
