package view

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/sds"
)

// kinds are the types by their names in scripts.
var kinds = map[string]resource.AnyType{
	"lds": lds.Type, "rds": rds.Type, "cds": cds.Type, "eds": eds.Type, "ecds": ecds.Type, "sds": sds.Type, "leds": leds.Type,
	"agg": aggregateKind, "vhds": vhdsKind, "srds": srdsKind,
}

func shortOf(typeURL string) string {
	for short, kind := range kinds {
		if kind.TypeURL() == typeURL {
			return short
		}
	}
	return typeURL
}

func anyOf(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

var ads = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}

// build makes a resource of words; see TestScripts.
func build(t testing.TB, kind, name string, words []string) proto.Message {
	t.Helper()
	switch kind {
	case "lds":
		return buildListener(name, words)
	case "rds":
		return buildRoutes(name, words)
	case "cds":
		return buildCluster(name, words)
	case "eds":
		return buildEndpoints(name, words)
	case "ecds":
		if next, ok := strings.CutPrefix(words[0], "next:"); ok { // it names another
			return &corev3.TypedExtensionConfig{Name: name, TypedConfig: anyOf(discovery(next, false))}
		}
		return &corev3.TypedExtensionConfig{Name: name, TypedConfig: anyOf(wrapperspb.String(strings.Join(words, " ")))}
	case "sds":
		return &tlsv3.Secret{Name: name}
	case "agg":
		return &aggregatev3.ClusterConfig{Clusters: words}
	case "leds":
		return endpointOf(words[0])
	case "vhds":
		return buildRoutes(name, words).VirtualHosts[0]
	}
	t.Fatalf("%s cannot be built", kind)
	return nil
}

// buildListener: api:RDS, api={ROUTES}, rds:NAME,…, tcp:CLUSTER,…, ecds:NAME, optional:NAME (ECDS too), bad, note:TEXT.
func buildListener(name string, words []string) *listenerv3.Listener {
	l := &listenerv3.Listener{Name: name}
	for _, word := range words {
		key, value, _ := strings.Cut(word, ":")
		switch key {
		case "api":
			l.ApiListener = &listenerv3.ApiListener{ApiListener: anyOf(manager(value))}
		case "inline":
			hcm := &hcmv3.HttpConnectionManager{RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: buildRoutes("own", []string{value})}}
			l.ApiListener = &listenerv3.ApiListener{ApiListener: anyOf(hcm)}
		case "rds":
			for n := range strings.SplitSeq(value, ",") {
				l.FilterChains = append(l.FilterChains, chain(manager(n)))
			}
		case "tcp":
			for n := range strings.SplitSeq(value, ",") {
				l.FilterChains = append(l.FilterChains, chain(&tcpv3.TcpProxy{ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: n}}))
			}
		case "ecds", "optional":
			l.FilterChains = append(l.FilterChains, chain(discovery(value, key == "optional")))
		case "bad":
			l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{Filters: []*listenerv3.Filter{{ConfigType: &listenerv3.Filter_TypedConfig{
				TypedConfig: &anypb.Any{TypeUrl: anyOf(&hcmv3.HttpConnectionManager{}).TypeUrl, Value: []byte{1}},
			}}}})
		case "scopes":
			hcm := &hcmv3.HttpConnectionManager{RouteSpecifier: &hcmv3.HttpConnectionManager_ScopedRoutes{ScopedRoutes: &hcmv3.ScopedRoutes{
				RdsConfigSource: ads, ConfigSpecifier: &hcmv3.ScopedRoutes_ScopedRds{ScopedRds: &hcmv3.ScopedRds{ScopedRdsConfigSource: ads}},
			}}}
			l.FilterChains = append(l.FilterChains, chain(hcm))
		case "stat":
			l.StatPrefix = value
		}
	}
	return l
}

func manager(route string) *hcmv3.HttpConnectionManager {
	if route == "" {
		return &hcmv3.HttpConnectionManager{}
	}
	return &hcmv3.HttpConnectionManager{RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: route, ConfigSource: ads}}}
}

// discovery has a filter that is configured by an extension configuration.
func discovery(name string, optional bool) *hcmv3.HttpConnectionManager {
	return &hcmv3.HttpConnectionManager{HttpFilters: []*hcmv3.HttpFilter{{Name: name, IsOptional: optional, ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{
		ConfigDiscovery: &corev3.ExtensionConfigSource{ConfigSource: ads},
	}}}}
}

func chain(filter proto.Message) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{Filters: []*listenerv3.Filter{{Name: "filter", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: anyOf(filter)}}}}
}

// buildRoutes: DOMAIN|DOMAIN=CLUSTER,~MIRROR,CLUSTER+CLUSTER (weighted),$HEADER … vhds
func buildRoutes(name string, words []string) *routev3.RouteConfiguration {
	rc := &routev3.RouteConfiguration{Name: name}
	for _, word := range words {
		if word == "vhds" {
			rc.Vhds = &routev3.Vhds{ConfigSource: ads}
			continue
		}
		domains, clusters, _ := strings.Cut(word, "=")
		vh := &routev3.VirtualHost{Name: domains, Domains: strings.Split(domains, "|")}
		for c := range strings.SplitSeq(clusters, ",") {
			if c != "" {
				vh.Routes = append(vh.Routes, &routev3.Route{Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{}}, Action: &routev3.Route_Route{Route: actionOf(c)}})
			}
		}
		rc.VirtualHosts = append(rc.VirtualHosts, vh)
	}
	return rc
}

func actionOf(c string) *routev3.RouteAction {
	if mirror, ok := strings.CutPrefix(c, "~"); ok {
		return &routev3.RouteAction{RequestMirrorPolicies: []*routev3.RouteAction_RequestMirrorPolicy{{Cluster: mirror}}}
	}
	if header, ok := strings.CutPrefix(c, "$"); ok {
		return &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_ClusterHeader{ClusterHeader: header}}
	}
	if !strings.Contains(c, "+") {
		return &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: c}}
	}
	all := &routev3.WeightedCluster{}
	for n := range strings.SplitSeq(c, "+") {
		all.Clusters = append(all.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: n})
	}
	return &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: all}}
}

// buildCluster: eds, eds:SERVICE, static:ADDR, dns:HOST, dnsx:HOST, agg:A,B, list:NAME, other, tls:X, match:X (of a socket), sds:SECRET, alt:X, path:X, within:DURATION (of eds).
func buildCluster(name string, words []string) *clusterv3.Cluster {
	c := &clusterv3.Cluster{Name: name}
	for _, word := range words {
		key, value, _ := strings.Cut(word, ":")
		switch key {
		case "eds":
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
			c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{ServiceName: value, EdsConfig: ads}
		case "path":
			//lint:ignore SA1019 servers may still send it
			c.EdsClusterConfig.EdsConfig = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Path{Path: value}}
		case "within":
			within, err := time.ParseDuration(value)
			if err != nil {
				panic(err)
			}
			c.EdsClusterConfig.EdsConfig = proto.CloneOf(ads)
			c.EdsClusterConfig.EdsConfig.InitialFetchTimeout = durationpb.New(within)
		case "static":
			c.LoadAssignment = buildEndpoints(name, []string{value})
		case "dns":
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
			c.LoadAssignment = buildEndpoints(name, []string{value})
		case "dnsx":
			c.ClusterDiscoveryType = custom(&dnsv3.DnsCluster{})
			c.LoadAssignment = buildEndpoints(name, []string{value})
		case "other":
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}
		case "agg":
			config := &aggregatev3.ClusterConfig{}
			if value != "" {
				config.Clusters = strings.Split(value, ",")
			}
			c.ClusterDiscoveryType = custom(config)
		case "list":
			c.ClusterDiscoveryType = custom(&aggregatev3.AggregateClusterResource{ResourceName: value, ConfigSource: ads})
		case "tls":
			c.TransportSocket = &corev3.TransportSocket{Name: value}
		case "match":
			c.TransportSocketMatches = append(c.TransportSocketMatches, &clusterv3.Cluster_TransportSocketMatch{Name: value})
		case "sds":
			c.TransportSocket = &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: anyOf(&tlsv3.UpstreamTlsContext{
				CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: value, SdsConfig: ads}}},
			})}}
		case "alt":
			c.AltStatName = value
		}
	}
	return c
}

// composite are hooks for clusters that name others: alt:+NAME needs it, alt:?NAME does not, and alt:=NAME
// names an extension's configuration, whose words name clusters if they begin with a +.
func composite() []Hook {
	return []Hook{
		{(*clusterv3.Cluster)(nil), func(m proto.Message, add func(Dependency)) {
			alt := m.(*clusterv3.Cluster).GetAltStatName()
			switch {
			case strings.HasPrefix(alt, "+"):
				add(Dependency{cds.Type, alt[1:], nil, Required})
			case strings.HasPrefix(alt, "?"):
				add(Dependency{cds.Type, alt[1:], nil, Optional})
			case strings.HasPrefix(alt, "="):
				add(Dependency{ecds.Type, alt[1:], ads, Required})
			}
		}},
		{(*wrapperspb.StringValue)(nil), func(m proto.Message, add func(Dependency)) {
			for word := range strings.FieldsSeq(m.(*wrapperspb.StringValue).GetValue()) {
				if name, ok := strings.CutPrefix(word, "+"); ok {
					add(Dependency{cds.Type, name, nil, Required})
				}
			}
		}},
	}
}

func custom(config proto.Message) *clusterv3.Cluster_ClusterType {
	return &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "envoy.clusters.aggregate", TypedConfig: anyOf(config)}}
}

// buildEndpoints: each word a locality: [pN/]ADDR*WEIGHT,ADDR, or leds:NAME; "-" is an empty one. A word
// drop:PERCENT is a policy, and ADDR+ADDR an endpoint with an additional address.
func buildEndpoints(name string, words []string) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for i, word := range words {
		if drop, ok := strings.CutPrefix(word, "drop:"); ok {
			n, _ := strconv.Atoi(drop)
			a.Policy = &endpointv3.ClusterLoadAssignment_Policy{DropOverloads: []*endpointv3.ClusterLoadAssignment_Policy_DropOverload{
				{Category: "c", DropPercentage: &typev3.FractionalPercent{Numerator: uint32(n)}},
			}}
			continue
		}
		l := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Region: strconv.Itoa(i)}}
		if p, rest, ok := strings.Cut(word, "/"); ok {
			n, _ := strconv.Atoi(strings.TrimPrefix(p, "p"))
			l.Priority, word = uint32(n), rest
		}
		switch list, isList := strings.CutPrefix(word, "leds:"); {
		case isList:
			l.LbConfig = &endpointv3.LocalityLbEndpoints_LedsClusterLocalityConfig{LedsClusterLocalityConfig: &endpointv3.LedsClusterLocalityConfig{
				LedsCollectionName: list, LedsConfig: ads,
			}}
		case word != "-":
			for addr := range strings.SplitSeq(word, ",") {
				l.LbEndpoints = append(l.LbEndpoints, endpointOf(addr))
			}
		}
		a.Endpoints = append(a.Endpoints, l)
	}
	return a
}

func endpointOf(text string) *endpointv3.LbEndpoint {
	addr, weight, _ := strings.Cut(text, "*")
	addr, more, _ := strings.Cut(addr, "+")
	host, port, ok := strings.Cut(addr, ":")
	n, _ := strconv.Atoi(port)
	if !ok {
		n = 80
	}
	e := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(n)},
		}}},
	}}}
	if more != "" {
		e.GetEndpoint().AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: more}}},
		}}
	}
	if w, err := strconv.Atoi(weight); err == nil {
		e.LoadBalancingWeight = wrapperspb.UInt32(uint32(w))
	}
	return e
}

// showEndpoints writes localities as buildEndpoints reads them, without the usual port.
func showEndpoints(e *Endpoints) string {
	if e == nil {
		return "none"
	}
	var out []string
	for p, localities := range e.Priorities() {
		for _, l := range localities {
			var addrs []string
			for _, lb := range endpointsOf(l) {
				sa := lb.GetEndpoint().GetAddress().GetSocketAddress()
				text := sa.GetAddress()
				if sa.GetPortValue() != 80 {
					text += fmt.Sprintf(":%d", sa.GetPortValue())
				}
				if w := lb.GetLoadBalancingWeight(); w != nil {
					text += fmt.Sprintf("*%d", w.GetValue())
				}
				addrs = append(addrs, text)
			}
			text := strings.Join(addrs, ",")
			if p > 0 {
				text = fmt.Sprintf("p%d/%s", p, text)
			}
			out = append(out, text)
		}
	}
	return "[" + strings.Join(out, " ") + "]"
}

// nested is a message in so many Any.
func nested(levels int, m proto.Message) *anypb.Any {
	a := anyOf(m)
	for range levels {
		a = anyOf(&corev3.TypedExtensionConfig{Name: "level", TypedConfig: a})
	}
	return a
}
