package bootstrap

import (
	"maps"
	"slices"
	"strings"
)

// Keys of the objects of gRPC's format (gRFC A27 and its successors).
var (
	rootKeys = []string{
		"xds_servers", "node", "authorities", dynamicParameters, "certificate_providers", "allowed_grpc_services",
		"client_default_listener_resource_name_template", "server_listener_resource_name_template",
	}
	serverKeys    = []string{"server_uri", "channel_creds", "call_creds", "server_features"}
	authorityKeys = []string{"client_listener_resource_name_template", "xds_servers", "fallback_on_reachability_only", dynamicParameters}
	nodeKeys      = []string{"id", "cluster", "metadata", "locality", dynamicParameters}
	localityKeys  = []string{"region", "zone", "sub_zone"}
	credsKeys     = []string{"type", "config"}
	tlsKeys       = []string{"ca_certificate_file", "certificate_file", "private_key_file", "refresh_interval", spiffeKey}
	configKeys    = append([]string{"jwt_token_file"}, tlsKeys...) // of the configs of all credentials
)

// spiffeKey is a field of a "tls" credential that gRPC has, and this program has not (gRFC A87).
const spiffeKey = "spiffe_trust_bundle_map_file"

// strangers are the members of an object that are none of keys, in order.
func (x field) strangers(keys []string) (names []string) {
	m, _ := x.val.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(keys, name) {
			names = append(names, name)
		}
	}
	return names
}

// secureKeys decide about security: what may be one of them and is misspelt is a fault.
var secureKeys = []string{"channel_creds", "call_creds"}

// mayHave notes the members of an object that gRPC passes over and that say something. One that is near
// to a secure key is a fault.
func (x field) mayHave(keys ...string) {
	for _, name := range x.strangers(keys) {
		near := nearest(name, keys)
		switch at := x.at(name); {
		case !at.present():
		case slices.Contains(secureKeys, near):
			// H-6: the credentials that it should name would be left out.
			at.hidden().fault("is not known here%s", didYouMean(name, keys))
		default:
			// BOOT-1, U-9: an unknown field is ignored, and noticed.
			at.notice("is not known here and has no effect%s", didYouMean(name, keys))
		}
	}
}

// mustMean is mayHave where a member may decide about security: one that is close to a decisive key, or is one that has no
// place here, is a fault.
func (x field) mustMean(decisive []string, keys ...string) {
	for _, name := range x.strangers(keys) {
		switch at := x.at(name); {
		case nearest(name, decisive) != "":
			// H-7: it would be passed over.
			at.hidden().fault("is not known here%s", didYouMean(name, keys))
		case at.present():
			at.notice("is not known here and has no effect")
		}
	}
}

// meant says which member of an object may be a misspelt one of keys.
func (x field) meant(keys ...string) string {
	for _, name := range x.strangers(keys) {
		if near := nearest(name, keys); near != "" {
			return "; did you mean that by " + shown(name) + "?"
		}
	}
	return ""
}

// schemes that gRPC knows, and some that it is taken to know.
var (
	schemes        = []string{"dns", "unix", "unix-abstract", "passthrough", "vsock", "xds"}
	foreignSchemes = []string{"http", "https", "grpc", "grpcs", "tcp", "tls"}
)

// noticeTarget notes what is odd in a target that is to be dialled. Its text is not told: it may
// hold a password.
func (x field) noticeTarget() {
	target, _ := x.val.(string)
	scheme, rest, ok := strings.Cut(target, ":")
	scheme = strings.ToLower(scheme)
	slashes := strings.HasPrefix(rest, "//")
	switch {
	case ok && slashes && slices.Contains(foreignSchemes, scheme):
		x.notice("%q is no scheme that gRPC knows; did you mean \"dns:///HOST:PORT\"?", scheme)
	case ok && slashes && !slices.Contains(schemes, scheme):
		if near := nearest(scheme, schemes); near != "" {
			x.notice("%q is no scheme that gRPC knows; did you mean %q?", scheme, near)
		}
	case !ok || scheme == "dns" && slashes:
		host := strings.TrimPrefix(rest, "//")
		if !ok {
			host = target
		} else if _, path, ok := strings.Cut(host, "/"); ok { // behind the DNS server to ask
			host = path
		}
		if host != "" && !hasPort(host) {
			x.notice("has no port, so that gRPC takes 443; a port is written HOST:PORT")
		}
	}
}

// hasPort is whether a port, if only an empty one, follows a host.
func hasPort(host string) bool {
	return strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']')
}
