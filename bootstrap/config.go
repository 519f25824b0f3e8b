// Package bootstrap reads the configuration of an xDS client: which management servers there
// are, how to reach them, and who the client is. It reads gRPC's bootstrap JSON (gRFC A27 and
// its successors) and the part of Envoy's bootstrap (JSON or YAML) that concerns management
// servers, and makes a [Config] of either.
//
// No other package reads files and environment variables for configuration, and this one only
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

// Config is a bootstrap, loaded or written by the program. It must not change once a client was
// made of it. A program that writes one sets Servers and the other fields that it needs, and may
// check it with [Config.Validate]; [Config.WithDefaults] fills unset fields.
//
// The servers of a name with an authority are those of Authorities, or else of Sources, or else
// of DefaultSource (Envoy's config_sources and default_config_source).
type Config struct {
	// Node says who the client is, as in the bootstrap. It is never nil when loaded; nil means
	// an empty one. The client adds user agent and client features if they are unset. Its
	// dynamic parameters can be changed while the client runs.
	Node *corev3.Node
	// Servers of names that have no authority, in order of priority: gRPC's xds_servers, Envoy's
	// ads_config. Required, unless Sources or DefaultSource are given, or Startup has a source
	// of its own or a file; without Servers a program cannot watch such names.
	Servers []ManagementServer
	// Authorities maps the authority of an xdstp name to its servers; "" is a valid
	// authority (gRFC A47). In an Envoy bootstrap it is that of a locator beside an lds_config or
	// cds_config of ads, if no other source answers for it.
	Authorities map[string]Authority
	// Sources are Envoy's config_sources, in order: the first that lists an authority serves it.
	Sources []Source
	// DefaultSource is Envoy's default_config_source, which serves every authority that nothing
	// else serves; nil if there is none.
	DefaultSource *Source
	// DynamicParameters select between the variants of resources.
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

	// Startup are the collections to watch from the start: those of cds_config and lds_config
	// and their locators in an Envoy bootstrap, Clusters before Listeners, as in Envoy. Other
	// formats have none. The client does not watch them; the program does.
	Startup []Subscription
	// NodeContextParams are the fields of the node that the client adds to the URLs of those
	// collections as context parameters, such as "id", "locality.zone" or "metadata" (Envoy's
	// node_context_params, xRFC TP1).
	NodeContextParams []string

	// Notices are what an operator should know and is no fault, one sentence each; the client
	// logs them when it is made. [Parse] gives the first thousand.
	Notices []string

	// origin is nil in a Config that a program wrote.
	origin *origin
}

// DynamicParameters are sent with each name in a subscription, so that the server sends the
// variant of the resource for such clients. They are not part of the name (xRFC TP2). The client
// passes over a variant whose constraints they do not fulfil. A client has one set for each kind
// of name, at all servers; sets are not combined. A server that does not know them finds no
// names in the requests. Version 2 of the transport has none.
type DynamicParameters struct {
	// Old are those of names without an authority: "dynamic_parameters" in a gRPC bootstrap
	// (gRFC A67). With them the client requests the wildcard as "*", since the form without
	// names has no room for them.
	Old map[string]string
	// Authorities maps the authority of xdstp names to its own: "dynamic_parameters" of its
	// entry in authorities (gRFC A67).
	Authorities map[string]map[string]string
}

// Authority is one entry of the map of authorities.
type Authority struct {
	// Servers in order of priority; the top-level ones if the entry has none.
	Servers []ManagementServer
	// ClientListenerTemplate is client_listener_resource_name_template; "" means
	// "xdstp://NAME/envoy.config.listener.v3.Listener/%s" with the authority's name,
	// percent-encoded (gRFC A47).
	ClientListenerTemplate string
	// FallbackOnReachabilityOnly is gRFC A95's fallback_on_reachability_only.
	FallbackOnReachabilityOnly bool
}

// ManagementServer says how to reach one management server, and what it supports.
type ManagementServer struct {
	// URI is a gRPC target: "host:port", "dns:///host:port", "unix:///path". With another
	// Carrier it is only a name, for errors and logs. What may be secret in it is not told; see Name. Required.
	URI string
	// Carrier says how the server is reached: [*GRPC], [*REST] or [*File]. nil means gRPC.
	Carrier Carrier
	// ChannelCreds is the first entry of channel_creds whose type is known. Required: [Insecure]
	// means plaintext. It is not used for a [*File], nor if each endpoint of a [*REST] has its
	// own.
	ChannelCreds ChannelCreds
	// CallCreds are all entries of call_creds whose type is known (gRFC A97).
	CallCreds []CallCreds
	Features  Features
	// Delta selects the incremental variant of the protocol: the entry "xdswatch.delta"
	// of server_features, or Envoy's DELTA_GRPC.
	Delta bool
	// PerType means one stream for each resource type instead of an aggregated one.
	PerType bool
	// TransportV2 uses version 2 of the xDS protocol with the server: its gRPC methods or paths
	// of REST, its type URLs in requests, and a Node with a build_version. Responses may have
	// the type URLs of either version. The program watches the types of version 3 and gets
	// resources of version 3 (gRFC A30). In a message that version 3 changed, fields that it
	// dropped are unknown fields, and a type URL inside it is not changed. A type that version 2
	// lacks has no stream of its own there, and uses its one type URL on an aggregated stream.
	// Envoy's transport_api_version sets the field, with [AllowV2].
	//
	// It also lets a [*File] have type URLs of either version; resource_api_version of a source
	// that is a file sets it. JSON, YAML and text, also of REST, are read as messages of version
	// 3, unless the program has those of version 2 (RESTConfig.Types, file.Config.Types): fields
	// that version 3 dropped are then lost, or in a file are a fault as unknown fields are, and
	// a message inside must be of a known type.
	TransportV2 bool
	// Headers are sent with every stream (Envoy's initial_metadata), in order.
	Headers []Header
	// HostAuthority overrides the :authority header; "" leaves it to gRPC. For Envoy's
	// envoy_grpc it is authority, or else the name of the cluster.
	HostAuthority string
	// RetryBase and RetryMax bound the wait between attempts (Envoy's retry_back_off);
	// 0 means the client's own.
	RetryBase, RetryMax time.Duration
	// RateLimit bounds how often the client sends on each stream (Envoy's rate_limit_settings);
	// nil for no bound.
	RateLimit *RateLimit
	// NodeOnEveryRequest sends the node with every request of a stream instead of only the
	// first: Envoy's set_node_on_first_message_only, if it is explicitly false. If it is left
	// out the first is enough, as in the xDS protocol, though Envoy itself would then repeat the
	// node; a ConfigSource that is not text cannot tell the two apart.
	NodeOnEveryRequest bool
}

// Header is one header of a stream. With a key that ends in "-bin" the value is bytes,
// before base64; else it is printable ASCII. Values may be secret.
type Header struct{ Key, Value string }

// Features are the entries of server_features that the client knows. It ignores others.
type Features struct {
	IgnoreResourceDeletion        bool // ignore_resource_deletion (gRFC A53)
	FailOnDataErrors              bool // fail_on_data_errors (gRFC A88)
	ResourceTimerIsTransientError bool // resource_timer_is_transient_error (gRFC A88)
	// TrustedXDSServer, trusted_xds_server (gRFC A81), lets routes of the server have the host of
	// requests replaced by the hostname of their endpoint. Envoy's bootstrap has no such entry:
	// there a program sets it.
	TrustedXDSServer bool
	// ResumeVersion, "xdswatch.resume_version", makes the first request of a new stream in state
	// of the world have the version that was accepted on the last stream, if everything that is
	// subscribed to is held or known not to exist, and nothing of a later, refused response is held: a
	// server that remembers its versions need not send again what the client holds. With a wildcard only types whose responses hold everything,
	// as listeners and clusters, have a version. Without the feature a new stream has none, as in
	// the xDS protocol, since some servers count versions from 1 with each process, or for each
	// replica, and send nothing if the numbers are equal by chance.
	ResumeVersion bool
	// ExplicitWildcard, "xdswatch.explicit_wildcard", is for servers that know the wildcard by
	// the name "*" (xDS protocol, "How the client specifies what resources to return"): the
	// client then subscribes to it by that name alone, begins and ends it with a request on the
	// existing stream, and in state of the world sends names beside it. Without the feature the
	// client subscribes to it by a stream's first request without names, which all servers know,
	// and begins and ends it with a stream: many servers take "*" for the name of a resource.
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
	// Build makes the credential of a type that [WithChannelCreds] defines. It may be nil for
	// "insecure" and "tls", which the transport makes itself.
	Build func() (credentials.Bundle, error)
}

// TLS names the files of a "tls" channel credential (gRFC A65). They are read at each
// handshake, and every few seconds while a connection exists, not when the bootstrap is loaded.
type TLS struct {
	CACertificateFile string // PEM; "" means the system's roots
	CertificateFile   string // PEM; with PrivateKeyFile, or neither
	PrivateKeyFile    string
	// RefreshInterval is how old the files' content may be at a handshake; 0 reads them at each.
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
	// SkipVerify does not verify who issued the server's certificate and for which host: any
	// certificate is accepted that SubjectAltNames and the hashes allow. An Envoy TLS context
	// asks for it by `trust_chain_verification: ACCEPT_UNTRUSTED`, by hashes without a trusted
	// CA, or with [AllowUnverifiedTLS] by naming no trusted CA.
	SkipVerify bool
	// MinVersion and MaxVersion of TLS are numbers of crypto/tls. 0 means TLS 1.2 and the
	// newest version that Go has (Envoy's tls_params).
	MinVersion, MaxVersion uint16
	// CipherSuites are those allowed up to TLS 1.2, as numbers of crypto/tls; nil means gRPC's
	// own choice. TLS 1.3 has its own, so Envoy's cipher_suites without a maximum version imply
	// TLS 1.2 as maximum, as in Envoy.
	CipherSuites []uint16
	// Curves are the allowed key exchanges (Envoy's ecdh_curves); nil means Go's own choice.
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
	// Build makes the credential of a type that [WithCallCreds] defines; it may be nil for
	// "jwt_token_file".
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
