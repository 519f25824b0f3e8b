package validation

import (
	"crypto/tls"
	"fmt"
	"math"
	"regexp/syntax"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// Rules of Envoy beside those of its messages. Their texts are stable.
const (
	RuleEnvoyDomain          = "envoy-domain"
	RuleEnvoyHeader          = "envoy-header-mutation"
	RuleEnvoyRegex           = "envoy-regex"
	RuleEnvoyWeights         = "envoy-weighted-clusters"
	RuleEnvoyRouter          = "envoy-router-last"
	RuleEnvoyLast            = "envoy-last-filter"
	RuleEnvoyChains          = "envoy-filter-chains"
	RuleEnvoyListener        = "envoy-listener"
	RuleEnvoyAddress         = "envoy-address"
	RuleEnvoyEDSConfig       = "envoy-eds-config"
	RuleEnvoyEDSEndpoints    = "envoy-eds-endpoints"
	RuleEnvoyClusterProvided = "envoy-cluster-provided"
	RuleEnvoyLogicalDNS      = "envoy-logical-dns"
	RuleEnvoyLEDS            = "envoy-leds"
	RuleEnvoyKeyPair         = "envoy-key-pair"
)

// EnvoyRules says what each of them wants, in order.
func EnvoyRules() [][2]string {
	return [][2]string{
		{RuleEnvoyDomain, "a domain is in one virtual host, whatever its case"},
		{RuleEnvoyHeader, "host and headers that begin with a colon are neither added nor removed by routes"},
		{RuleEnvoyRegex, "a regular expression compiles"},
		{RuleEnvoyWeights, "weighted clusters have weights that sum up to 1 at least and 4294967295 at most, and each a name or a cluster_header"},
		{RuleEnvoyRouter, "the router, where there is one, is the last HTTP filter"},
		{RuleEnvoyLast, "the last HTTP or network filter is none of Envoy's that pass on to a next one, and not disabled; a network filter that ends its chain is the last"},
		{RuleEnvoyChains, "the matches of two filter chains differ in a field, without an element in common"},
		{RuleEnvoyListener, "a listener has an address and, but for UDP, a filter chain; an API listener and an internal one need no address"},
		{RuleEnvoyAddress, "no two listeners have one address and port"},
		{RuleEnvoyEDSConfig, "an EDS cluster has an eds_config"},
		{RuleEnvoyEDSEndpoints, "an EDS cluster has no endpoints itself"},
		{RuleEnvoyClusterProvided, "lb_policy is CLUSTER_PROVIDED where the type is ORIGINAL_DST, and not where it is another one of Envoy's own"},
		{RuleEnvoyLogicalDNS, "a LOGICAL_DNS cluster has one locality with one endpoint"},
		{RuleEnvoyLEDS, "a locality has endpoints or a source of them (LEDS), and not both"},
		{RuleEnvoyKeyPair, "a certificate and a private key that are both inline, and not encrypted, belong together"},
	}
}

// envoy judges a message that is part of a resource.
func (j *judge) envoy(r resources.Resource, path string, m proto.Message) {
	refuses := func(rule, field, message string) {
		j.found(r, Error, rule, resources.Join(path, field), message)
	}
	switch m := m.(type) {
	case *routev3.RouteConfiguration:
		envoyDomains(m, refuses)
		envoyHeaders(refuses, m.GetRequestHeadersToAdd(), m.GetResponseHeadersToAdd(), m.GetRequestHeadersToRemove(), m.GetResponseHeadersToRemove())
	case *routev3.VirtualHost:
		envoyHeaders(refuses, m.GetRequestHeadersToAdd(), m.GetResponseHeadersToAdd(), m.GetRequestHeadersToRemove(), m.GetResponseHeadersToRemove())
	case *routev3.Route:
		envoyHeaders(refuses, m.GetRequestHeadersToAdd(), m.GetResponseHeadersToAdd(), m.GetRequestHeadersToRemove(), m.GetResponseHeadersToRemove())
	case *routev3.WeightedCluster:
		envoyWeights(m.GetClusters(), refuses)
	case *routev3.WeightedCluster_ClusterWeight:
		envoyHeaders(refuses, m.GetRequestHeadersToAdd(), m.GetResponseHeadersToAdd(), m.GetRequestHeadersToRemove(), m.GetResponseHeadersToRemove())
	case *matcherv3.RegexMatcher:
		if _, err := syntax.Parse(m.GetRegex(), syntax.Perl); err != nil { // H-5: as compiling it would, which costs more
			refuses(RuleEnvoyRegex, "regex", "the regular expression does not compile")
		}
	case *hcmv3.HttpConnectionManager:
		envoyHTTPFilters(m.GetHttpFilters(), refuses)
	case *listenerv3.FilterChain:
		envoyNetworkFilters(m.GetFilters(), refuses)
	case *listenerv3.Listener:
		envoyListener(m, refuses)
		envoyChains(m, refuses)
		j.addresses(m, refuses)
	case *clusterv3.Cluster:
		envoyCluster(m, refuses)
	case *endpointv3.LocalityLbEndpoints:
		if m.GetLbConfig() != nil && len(m.GetLbEndpoints()) > 0 {
			refuses(RuleEnvoyLEDS, "lbEndpoints", "the locality has endpoints beside a source of them")
		}
	case *tlsv3.TlsCertificate:
		certificate, key := inlineOf(m.GetCertificateChain()), inlineOf(m.GetPrivateKey())
		if certificate == nil || key == nil || string(key) == resourcejson.Redacted || m.GetPassword() != nil {
			return // it is elsewhere, or encrypted
		}
		if _, err := tls.X509KeyPair(certificate, key); err != nil {
			refuses(RuleEnvoyKeyPair, "", "certificate and private key cannot be read, or do not belong together")
		}
	}
}

type refusal func(rule, field, message string)

func envoyDomains(rc *routev3.RouteConfiguration, refuses refusal) {
	seen := map[string]bool{}
	for i, vh := range rc.GetVirtualHosts() {
		for k, d := range vh.GetDomains() {
			if seen[strings.ToLower(d)] {
				refuses(RuleEnvoyDomain, fmt.Sprintf("virtualHosts[%d].domains[%d]", i, k), "the domain is there before")
			}
			seen[strings.ToLower(d)] = true
		}
	}
}

func envoyHeaders(refuses refusal, requestAdd, responseAdd []*corev3.HeaderValueOption, requestRemove, responseRemove []string) {
	fixed := func(name string) bool { return strings.HasPrefix(name, ":") || strings.EqualFold(name, "host") }
	for _, it := range []struct {
		field string
		added []*corev3.HeaderValueOption
	}{{"requestHeadersToAdd", requestAdd}, {"responseHeadersToAdd", responseAdd}} {
		for i, h := range it.added {
			if fixed(h.GetHeader().GetKey()) {
				refuses(RuleEnvoyHeader, fmt.Sprintf("%s[%d].header.key", it.field, i), "the header cannot be changed")
			}
		}
	}
	for _, it := range []struct {
		field   string
		removed []string
	}{{"requestHeadersToRemove", requestRemove}, {"responseHeadersToRemove", responseRemove}} {
		for i, name := range it.removed {
			if fixed(name) {
				refuses(RuleEnvoyHeader, fmt.Sprintf("%s[%d]", it.field, i), "the header cannot be removed")
			}
		}
	}
}

func envoyWeights(clusters []*routev3.WeightedCluster_ClusterWeight, refuses refusal) {
	sum, all := uint64(0), true
	for i, c := range clusters {
		if c.GetWeight() == nil {
			refuses(RuleEnvoyWeights, fmt.Sprintf("clusters[%d].weight", i), "the cluster has no weight")
			all = false
		}
		if (c.GetName() == "") == (c.GetClusterHeader() == "") {
			refuses(RuleEnvoyWeights, fmt.Sprintf("clusters[%d].name", i), "the cluster has neither a name nor a cluster_header, or both")
		}
		sum += uint64(c.GetWeight().GetValue())
	}
	if all && sum == 0 || sum > math.MaxUint32 {
		refuses(RuleEnvoyWeights, "clusters", "weights sum up to 0, or to more than 4294967295")
	}
}

func envoyCluster(c *clusterv3.Cluster, refuses refusal) {
	if c.GetClusterType() != nil { // of an extension
		return
	}
	eds, provided := c.GetType() == clusterv3.Cluster_EDS, c.GetLbPolicy() == clusterv3.Cluster_CLUSTER_PROVIDED
	if eds && c.GetEdsClusterConfig().GetEdsConfig() == nil {
		refuses(RuleEnvoyEDSConfig, "edsClusterConfig.edsConfig", "there is no source of endpoints")
	}
	if eds && c.GetLoadAssignment() != nil {
		refuses(RuleEnvoyEDSEndpoints, "loadAssignment", "the cluster has endpoints itself, and they are to come by EDS")
	}
	if own := c.GetType() == clusterv3.Cluster_ORIGINAL_DST; own != provided && c.GetLoadBalancingPolicy() == nil {
		refuses(RuleEnvoyClusterProvided, "lbPolicy", "type and policy do not go together")
	}
	if c.GetType() != clusterv3.Cluster_LOGICAL_DNS {
		return
	}
	if ls := c.GetLoadAssignment().GetEndpoints(); len(ls) != 1 || len(ls[0].GetLbEndpoints()) != 1 {
		refuses(RuleEnvoyLogicalDNS, "loadAssignment", "there is not exactly one locality with one endpoint")
	}
}

// inlineOf is the content of a data source that has it; nil if it is elsewhere.
func inlineOf(d *corev3.DataSource) []byte {
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_InlineBytes:
		return s.InlineBytes
	case *corev3.DataSource_InlineString:
		return []byte(s.InlineString)
	}
	return nil
}
