// Package bootstrap reads the configuration of an xDS client: which management servers
// there are, how to reach them, and who the client is. It reads gRPC's bootstrap JSON
// (gRFC A27 and its successors) and the part of Envoy's bootstrap (JSON or YAML) that
// speaks of management servers, and makes one [Config] of either.
//
// It is the only reader of files and environment variables for configuration, and only
// when asked. It never dials.
package bootstrap

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/credentials"
)

// Config is a bootstrap, loaded or written by the program. It is immutable once a client
// was made of it. A program that writes one sets Servers and what else it needs, and may
// ask [Config.Validate]; [Config.WithDefaults] fills what was left out.
//
// A name with an authority is looked up in Authorities, then in Sources, and then belongs
// to DefaultSource (Envoy's config_sources and default_config_source).
type Config struct {
	// Node says who the client is, as the bootstrap gave it; never nil when loaded, and
	// nil means an empty one. User agent and client features are added by the client
	// where they are unset. Its dynamic parameters can be changed while the client runs.
	Node *corev3.Node
	// Servers of names that have no authority, in order of priority: gRPC's xds_servers,
	// Envoy's ads_config. Required, unless Sources or DefaultSource are given, or Startup has
	// a source of its own or a file; without them such names cannot be watched.
	Servers []ManagementServer
	// Authorities maps the authority of an xdstp name to its servers; "" is a valid
	// authority (gRFC A47).
	Authorities map[string]Authority
	// Sources are Envoy's config_sources, in order: the first that names an authority
	// answers for it.
	Sources []Source
	// DefaultSource is Envoy's default_config_source, which answers for every authority
	// that nothing else does; nil if there is none.
	DefaultSource *Source
	// DynamicParameters choose between the variants of resources.
	DynamicParameters DynamicParameters

	// ClientDefaultListenerTemplate is client_default_listener_resource_name_template;
	// "" means "%s" (gRFC A47).
	ClientDefaultListenerTemplate string
	// ServerListenerTemplate is server_listener_resource_name_template; "" if not set
	// (gRFC A36).
	ServerListenerTemplate string
	// CertificateProviders by instance name, kept for the program (gRFC A29).
	CertificateProviders map[string]CertificateProvider
	// AllowedGRPCServices by target URI, kept for the program (gRFC A102).
	AllowedGRPCServices map[string]GRPCService

	// Startup is what is to be watched from the start: what an Envoy bootstrap asks for by
	// cds_config and lds_config and their locators, Clusters before Listeners, as Envoy does
	// it. Other formats ask for nothing. The client leaves it to the program to watch these.
	Startup []Subscription
	// NodeContextParams are the fields of the node that are added to the URLs of those
	// collections as context parameters, such as "id", "locality.zone" or "metadata"
	// (Envoy's node_context_params, xRFC TP1).
	NodeContextParams []string

	// Notices are things that an operator should know and that are no faults, one
	// sentence each; the client logs them when it is made.
	Notices []string

	// origin is nil in a Config that a program wrote.
	origin *origin
}

// DynamicParameters are what servers are told with each name that is asked for, so that
// they send the variant of the resource that is meant for such clients. They are no part of
// the name (xRFC TP2). A variant with constraints that they do not fulfil is passed over. A
// client has one set for each kind of name, whichever server answers; they do not add up. A
// server that does not know them finds no names in the requests. The v2 transport has none.
type DynamicParameters struct {
	// Old are those of names that have no authority: "dynamic_parameters" in a gRPC
	// bootstrap (gRFC A67). Everything of a type is then asked for as "*", since the form
	// without names has no room for them.
	Old map[string]string
	// Authorities maps the authority of xdstp names to its own: "dynamic_parameters" of its
	// entry in authorities (gRFC A67).
	Authorities map[string]map[string]string
}

// Authority is one entry of the map of authorities.
type Authority struct {
	// Servers in order of priority; the top-level ones where the entry has none.
	Servers []ManagementServer
	// ClientListenerTemplate is client_listener_resource_name_template; "" means
	// "xdstp://NAME/envoy.config.listener.v3.Listener/%s" with the authority's name,
	// percent-encoded (gRFC A47).
	ClientListenerTemplate string
	// FallbackOnReachabilityOnly is gRFC A95's fallback_on_reachability_only.
	FallbackOnReachabilityOnly bool
}

// ManagementServer is how to reach one management server, and what it is like.
type ManagementServer struct {
	// URI is a gRPC target: "host:port", "dns:///host:port", "unix:///path". With another
	// Carrier it is but a name, for errors and logs. Required.
	URI string
	// Carrier says how the server is reached: [*GRPC], [*REST] or [*File]. nil means gRPC.
	Carrier Carrier
	// ChannelCreds is the first entry of channel_creds whose type is known. Required:
	// [Insecure] asks for plaintext. It is not used for a [*File], nor where each endpoint of
	// a [*REST] has its own.
	ChannelCreds ChannelCreds
	// CallCreds are all entries of call_creds whose type is known (gRFC A97).
	CallCreds []CallCreds
	Features  Features
	// Delta selects the incremental variant of the protocol: the entry "xdswatch.delta"
	// of server_features, or Envoy's DELTA_GRPC.
	Delta bool
	// PerType asks for one stream for each resource type in place of an aggregated one.
	PerType bool
	// TransportV2 speaks version 2 of the xDS protocol to the server: its gRPC methods or
	// paths of REST, its type URLs in requests, and a Node with a build_version. Responses
	// may have the type URLs of either version, and resources are of version 3 to the
	// program, which watches the types of version 3 (gRFC A30). Of a message that version 3
	// changed, fields that it dropped are unknown fields, and a type URL inside it stays what
	// it is. A type that version 2 lacks has no stream of its own there, and goes by its one
	// type URL on an aggregated stream. Envoy's transport_api_version sets it, with [AllowV2].
	//
	// It lets a [*File] have type URLs of either version; resource_api_version of
	// a source that is a file sets it. JSON, YAML and text, of REST too, are read as messages
	// of version 3, unless the program knows those of version 2 (RESTConfig.Types,
	// file.Config.Types): fields that version 3 dropped are lost then, or in a file are the
	// fault that unknown fields are, and a message inside has to be of a type that is known.
	TransportV2 bool
	// Headers are sent with every stream (Envoy's initial_metadata), in order.
	Headers []Header
	// HostAuthority overrides the :authority header; "" leaves it to gRPC. With Envoy's
	// envoy_grpc it is authority, or else the name of the cluster.
	HostAuthority string
	// RetryBase and RetryMax bound the wait between attempts (Envoy's retry_back_off);
	// 0 means the client's own.
	RetryBase, RetryMax time.Duration
	// RateLimit bounds how often something is sent on each stream (Envoy's
	// rate_limit_settings); nil for no bound.
	RateLimit *RateLimit
	// NodeOnEveryRequest sends the node with every request of a stream in place of the
	// first alone: Envoy's set_node_on_first_message_only, where it is written out as
	// false. Where it is left out the first is enough, as the xDS protocol has it, though
	// Envoy itself would then repeat the node; a ConfigSource that is no text cannot tell
	// the two apart.
	NodeOnEveryRequest bool
}

// Header is one header of a stream. With a key that ends in "-bin" the value is bytes,
// before base64; else it is printable ASCII. Values may be secret.
type Header struct{ Key, Value string }

// Features are the entries of server_features that are understood. Others are ignored.
type Features struct {
	IgnoreResourceDeletion        bool // ignore_resource_deletion (gRFC A53)
	FailOnDataErrors              bool // fail_on_data_errors (gRFC A88)
	ResourceTimerIsTransientError bool // resource_timer_is_transient_error (gRFC A88)
	TrustedXDSServer              bool // trusted_xds_server (gRFC A81)
	// ResumeVersion, "xdswatch.resume_version", has a new stream in state of the world say the
	// version that was accepted on the last one, if everything that is asked for is held or known
	// not to exist: a server that remembers its versions need not send again what the client
	// holds. Without it a new stream says none, as the xDS protocol has it, since some servers
	// count versions from 1 with each process, or for each replica, and are silent where the
	// numbers are equal by chance.
	ResumeVersion bool
	// ExplicitWildcard, "xdswatch.explicit_wildcard", is for servers that know the wildcard by the
	// name "*" (xDS protocol, "How the client specifies what resources to return"): it is then asked
	// for by that name alone, begins and ends with a message on the stream that there is, and in
	// state of the world names are sent beside it. Without the feature it is asked for by a
	// stream's first request without names, which all servers know, and begins and ends with a
	// stream: many take "*" for the name of a resource.
	ExplicitWildcard bool
}

// ChannelCreds is a selected channel credential.
type ChannelCreds struct {
	// Type as in the bootstrap: "insecure", "tls", "google_default" or a program's own.
	Type string
	// Config is the entry's config as compact JSON; nil if there was none. It may hold
	// secrets.
	Config json.RawMessage
	// TLS belongs to type "tls"; nil, like the zero TLS, means the system's roots and no
	// client certificate.
	TLS *TLS
	// Build makes the credential of a type that was given with [WithChannelCreds]. It may
	// be nil for "insecure" and "tls", which the transport makes itself.
	Build func() (credentials.Bundle, error)
}

// TLS names the files of a "tls" channel credential (gRFC A65). They are read at each
// handshake, not when the bootstrap is loaded.
type TLS struct {
	CACertificateFile string // PEM; "" means the system's roots
	CertificateFile   string // PEM; with PrivateKeyFile, or neither
	PrivateKeyFile    string
	// RefreshInterval says how old what was read may be at a handshake; 0 reads at each.
	RefreshInterval time.Duration
	// ServerName overrides the name that is verified and sent as SNI (Envoy's sni).
	// "" means the host of the target.
	ServerName string
	// CACertificate, Certificate and PrivateKey are PEM texts given in place of files
	// (Envoy's inline_string and inline_bytes).
	CACertificate, Certificate, PrivateKey []byte
	// SubjectAltNames, if any, are exact DNS names, URIs or IP addresses of which the server's
	// certificate must hold one, in place of the host name check (Envoy's
	// match_typed_subject_alt_names with exact matchers).
	SubjectAltNames []string
	// CertificateHashes and PublicKeyHashes, if any, are the SHA-256 of certificates and of
	// public keys (SubjectPublicKeyInfo in DER) of which the server's must be one, whatever
	// else is verified (Envoy's verify_certificate_hash and verify_certificate_spki).
	CertificateHashes, PublicKeyHashes [][sha256.Size]byte
	// SkipVerify leaves out who issued the server's certificate and for which host: anything
	// is accepted that SubjectAltNames and the hashes let pass. An Envoy TLS context asks
	// for it by `trust_chain_verification: ACCEPT_UNTRUSTED`, by hashes without a trusted CA, or
	// with [AllowUnverifiedTLS] by naming no trusted CA.
	SkipVerify bool
	// MinVersion and MaxVersion of TLS are numbers of crypto/tls. 0 means TLS 1.2 and the
	// newest version that Go has (Envoy's tls_params).
	MinVersion, MaxVersion uint16
	// CipherSuites that may be used up to TLS 1.2, as numbers of crypto/tls; nil means gRPC's
	// own choice. TLS 1.3 has its own, so Envoy's cipher_suites without a maximum version
	// have TLS 1.2 for that, as in Envoy.
	CipherSuites []uint16
	// Curves are the key exchanges that may be used (Envoy's ecdh_curves); nil means Go's own
	// choice.
	Curves []tls.CurveID
	// EnforceRSAKeyUsage refuses an RSA certificate whose key usage does not allow what it is
	// used for (Envoy's enforce_rsa_key_usage).
	EnforceRSAKeyUsage bool
}

// CallCreds is one call credential.
type CallCreds struct {
	Type   string          // "jwt_token_file" or a program's own
	Config json.RawMessage // as compact JSON; nil if there was none
	// TokenFile is set for "jwt_token_file".
	TokenFile string
	// Build makes the credential of a type that was given with [WithCallCreds]; it may
	// be nil for "jwt_token_file".
	Build func() (credentials.PerRPCCredentials, error)
}

// CertificateProvider is one entry of certificate_providers, kept as it was written.
type CertificateProvider struct {
	PluginName string
	Config     json.RawMessage
}

// GRPCService is one entry of allowed_grpc_services.
type GRPCService struct {
	ChannelCreds ChannelCreds
	CallCreds    []CallCreds
}
