package bootstrap

import (
	"encoding/base64"
	"math"
	"strings"
	"time"
)

// apiTypes are the numbers of envoy.config.core.v3.ApiConfigSource.ApiType.
var apiTypes = map[string]string{
	"0": "UNSPECIFIED", "1": "REST", "2": "GRPC", "3": "DELTA_GRPC",
	"5": "AGGREGATED_GRPC", "6": "AGGREGATED_DELTA_GRPC",
}

// apiUse says which API types a place takes, and what they mean there.
type apiUse uint8

const (
	anyAPI        apiUse = iota // ads_config: every type stands for aggregated streams
	aggregatedAPI               // config_sources: the AGGREGATED types alone
	defaultAPI                  // default_config_source: those and REST, which polls each type
	ownAPI                      // a source of its own: GRPC has a stream for each type, REST polls
)

// wants are the API types of a place, for error texts.
func (u apiUse) wants() string {
	switch u {
	case aggregatedAPI:
		return "AGGREGATED_GRPC or AGGREGATED_DELTA_GRPC"
	case defaultAPI:
		return "AGGREGATED_GRPC, AGGREGATED_DELTA_GRPC or REST"
	case ownAPI:
		return "AGGREGATED_GRPC, AGGREGATED_DELTA_GRPC, GRPC, DELTA_GRPC or REST"
	case anyAPI:
	}
	return "GRPC or DELTA_GRPC"
}

// apiConfigSource reads an envoy.config.core.v3.ApiConfigSource.
func (x field) apiConfigSource(use apiUse) []ManagementServer {
	if !x.object() {
		return nil
	}
	api := x.at("api_type").apiType(use)
	v2 := x.at("transport_api_version").apiVersion()
	// CFG-5: guards judge responses in their place.
	if v := x.at("config_validators"); len(v.items()) > 0 {
		v.notice("is not used; a program may have guards of its own")
	}
	names := x.at("cluster_names")
	switch {
	case api == "REST":
		return x.restServer(v2)
	case len(names.items()) == 0:
	case api == "":
		return nil // what was meant is maybe REST
	default:
		// CFG-5: gRPC names services.
		names.fault("cluster_names belongs to REST; want grpc_services")
	}
	limit, nodes := x.at("rate_limit_settings").rateLimit(), x.at("set_node_on_first_message_only")
	always := nodes.present() && !nodes.boolean()
	servers := x.at("grpc_services").grpcServiceList()
	for i := range servers {
		s := &servers[i]
		// CFG-2: the type decides variant and aggregation.
		s.Delta = api == "DELTA_GRPC" || api == "AGGREGATED_DELTA_GRPC"
		s.PerType = use == ownAPI && (api == "GRPC" || api == "DELTA_GRPC")
		s.RateLimit, s.NodeOnEveryRequest, s.TransportV2 = limit.clone(), always, v2
	}
	return servers
}

// apiType reads the api_type of a place; "" after a fault.
func (x field) apiType(use apiUse) string {
	name := x.enum(apiTypes, "UNSPECIFIED")
	switch name {
	case "AGGREGATED_GRPC", "AGGREGATED_DELTA_GRPC":
		return name
	// AUTH-2, CFG-2: what several types share is aggregated.
	case "GRPC", "DELTA_GRPC":
		if use == anyAPI || use == ownAPI {
			return name
		}
	case "REST":
		// E-2: default_config_source may poll.
		if use == ownAPI || use == defaultAPI {
			return name
		}
	case "UNSPECIFIED":
		x.fault("required: %s", use.wants())
		return ""
	case "":
		return ""
	}
	x.fault("want %s", use.wants())
	return ""
}

// apiVersion is whether version 2 is asked for, which has to be allowed; AUTO is version 3.
func (x field) apiVersion() (v2 bool) {
	switch x.enum(map[string]string{"0": "AUTO", "1": "V2", "2": "V3"}, "AUTO") {
	// CFG-4: AUTO is version 3.
	case "AUTO", "V3", "":
	case "V2":
		// CFG-4: version 2 is refused unless it is allowed.
		if x.doc.opts.v2 {
			return true
		}
		x.fault("version 2 of the xDS protocol is not supported; want V3")
	default:
		x.fault("want V3 or AUTO")
	}
	return false
}

// grpcServiceList reads grpc_services: the first is the primary, a second the one to fall
// back to.
func (x field) grpcServiceList() []ManagementServer {
	items := x.items()
	switch {
	case len(items) == 0:
		x.fault("required: one gRPC service")
	case len(items) > 2:
		x.fault("%d gRPC services are given; want one, or two for failover", len(items))
	}
	var out []ManagementServer
	for _, item := range items {
		if item.entry() {
			out = append(out, item.grpcService())
		}
	}
	return out
}

// grpcService reads an envoy.config.core.v3.GrpcService.
func (x field) grpcService() ManagementServer {
	envoy, google := x.at("envoy_grpc"), x.at("google_grpc")
	var s ManagementServer
	switch {
	case envoy.present() && google.present():
		google.fault("is given beside envoy_grpc; want one of them")
	case envoy.object():
		s = envoy.envoyGRPC()
	case google.object():
		s = google.googleGRPC()
	case !envoy.present() && !google.present():
		x.fault("want envoy_grpc or google_grpc")
	}
	// BOOTE-3: the headers and the backoff of the service.
	for _, item := range x.at("initial_metadata").items() {
		if item.entry() {
			s.Headers = append(s.Headers, item.header())
		}
	}
	retry := envoy.at("retry_policy")
	if !retry.present() {
		retry = x.at("retry_policy")
	}
	s.RetryBase, s.RetryMax = retry.at("retry_back_off").backoff()
	return s
}

// envoyGRPC finds the static cluster of an EnvoyGrpc. Its name is the :authority where
// none is given.
func (x field) envoyGRPC() ManagementServer {
	name, to := x.at("cluster_name").staticCluster()
	s := ManagementServer{
		URI: to.URI, ChannelCreds: to.ChannelCreds, HostAuthority: orDefault(x.at("authority").str(), name),
	}
	if to.Carrier != nil {
		s.Carrier = to.Carrier.clone()
	}
	return s
}

// staticCluster finds the static cluster that a field names: how it is reached.
func (x field) staticCluster() (name string, to ManagementServer) {
	name = x.required()
	to, ok := x.doc.clusters.find(name)
	if !ok && name != "" && !x.doc.clusters.broken {
		x.fault("no cluster in static_resources has this name")
	}
	return name, to
}

// header reads an envoy.config.core.v3.HeaderValue. A "-bin" header is base64 there.
func (x field) header() Header {
	h := Header{Key: strings.ToLower(x.at("key").str()), Value: x.at("value").hidden().str()}
	if strings.Contains(h.Value, "%") {
		x.at("value").notice("is sent as it is written; Envoy's %%COMMAND%%s are not replaced")
	}
	binary := strings.HasSuffix(h.Key, binarySuffix)
	raw := x.at("raw_value").hidden()
	switch {
	case raw.present() && h.Value != "":
		raw.fault("is given beside value; want one of them")
	case raw.present():
		h.Value = string(raw.base64())
	case binary:
		h.Value = string(x.at("value").hidden().base64())
	}
	if reason := headerFault(h); reason != "" {
		key := x.at("key")
		key.secret = !isKey(h.Key) // H-3: it may be the value
		key.fault("%s", reason)
	}
	return h
}

// base64 is a bytes field in any of the alphabets that protobuf's JSON allows.
func (x field) base64() []byte {
	text := strings.TrimRight(x.str(), "=")
	text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		x.fault("want base64")
	}
	return b
}

// backoff reads an envoy.config.core.v3.BackoffStrategy, whose max_interval is ten times
// base_interval by default; zeros if it is absent.
func (x field) backoff() (base, most time.Duration) {
	if !x.object() {
		return 0, 0
	}
	lower, upper := x.at("base_interval"), x.at("max_interval")
	base, most = lower.duration(), upper.duration()
	switch {
	case base == 0:
		lower.fault("required, more than 0")
	// BACKOFF-1: ten times the base.
	case !upper.present():
		most = base * 10
		if base > math.MaxInt64/10 {
			most = math.MaxInt64
		}
	case most < base:
		upper.fault("must not be less than base_interval")
	}
	return base, most
}
