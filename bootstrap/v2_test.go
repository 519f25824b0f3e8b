package bootstrap_test

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Version 2 is a fault unless it is allowed, and then an affair of the server that asks for
// it. That the fault stands without the option is proven with the other checks of Envoy's.
//
// spec: V2-1 CFG-4
func TestAllowV2(t *testing.T) {
	doc := func(version string) string {
		const service = `"grpc_services":[{"google_grpc":{"target_uri":"x:1"}}]`
		return `{"node":{"id":"a","cluster":"b"},"dynamic_resources":{` +
			`"lds_config":{"ads":{},"resource_api_version":` + version + `},` +
			`"ads_config":{"api_type":"GRPC","transport_api_version":` + version + `,` + service + `}},` +
			`"config_sources":[{"authorities":[{"name":"c"}],"resource_api_version":"V3",` +
			`"api_config_source":{"api_type":"AGGREGATED_DELTA_GRPC","transport_api_version":"V3",` + service + `}}]}`
	}
	for version, v2 := range map[string]bool{`"V2"`: true, `1`: true, `"AUTO"`: false, `0`: false, `"V3"`: false, `2`: false} {
		c, err := bootstrap.Parse("envoy", []byte(doc(version)), bootstrap.AllowV2())
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if got := c.Servers[0].TransportV2; got != v2 {
			t.Errorf("%s: version 2 is %v", version, got)
		}
		if c.Sources[0].Servers[0].TransportV2 || len(c.Startup) == 0 {
			t.Errorf("%s: %+v", version, c)
		}
	}
	if _, err := bootstrap.Parse("envoy", []byte(doc(`"V4"`)), bootstrap.AllowV2()); err == nil ||
		!strings.Contains(err.Error(), `ads_config.transport_api_version = "V4": want V3 or AUTO`) {
		t.Errorf("version 4: %v", err)
	}
}

// The option of a bootstrap holds for the sources that are read with it later.
//
// spec: V2-1 CFG-4
func TestAllowV2ConfigSource(t *testing.T) {
	const v2 = corev3.ApiVersion(1) // V2, whose name is deprecated
	grpc := &corev3.ApiConfigSource{ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: v2}
	grpc.GrpcServices = []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{
		GoogleGrpc: &corev3.GrpcService_GoogleGrpc{TargetUri: "x:1"},
	}}}
	rest := &corev3.ApiConfigSource{ApiType: corev3.ApiConfigSource_REST, TransportApiVersion: v2}
	rest.ClusterNames, rest.RefreshDelay = []string{"xds"}, durationpb.New(time.Minute)
	path := &corev3.PathConfigSource{Path: "/f"}
	c, err := bootstrap.Parse("envoy", []byte(polledBootstrap), bootstrap.AllowV2())
	if err != nil {
		t.Fatal(err)
	}
	for _, cs := range []*corev3.ConfigSource{
		{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: grpc}},
		{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: rest}},
		{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: path}},
	} {
		cs.ResourceApiVersion = v2
		s, err := c.ConfigSource(cs)
		if err != nil || len(s.Servers) != 1 || !s.Servers[0].TransportV2 {
			t.Errorf("%v: %+v, %v", cs, s, err)
		}
		cs.ResourceApiVersion = corev3.ApiVersion_V3
		if s, err = c.ConfigSource(cs); err != nil || s.Servers[0].TransportV2 != (s.Servers[0].File() == nil) {
			t.Errorf("%v: %+v, %v", cs, s, err)
		}
	}
	if c.Servers[0].TransportV2 {
		t.Error("the server of the bootstrap is of version 2 without a word of it")
	}
}

const polledBootstrap = `{"node":{"id":"a","cluster":"b"},
	"dynamic_resources":{"ads_config":{"api_type":"GRPC","grpc_services":[{"google_grpc":{"target_uri":"x:1"}}]}},
	"static_resources":{"clusters":[{"name":"xds","type":"STATIC","load_assignment":{"cluster_name":"xds","endpoints":[
		{"lb_endpoints":[{"endpoint":{"address":{"socket_address":{"address":"127.0.0.1","port_value":1}}}}]}]}}]}}`

// What a bootstrap asks for at its start may be of version 2 too: polled, or in a file.
//
// spec: V2-1 CFG-4
func TestAllowV2Startup(t *testing.T) {
	doc := strings.Replace(polledBootstrap, `"dynamic_resources":{`, `"dynamic_resources":{
		"lds_config":{"resource_api_version":"V2","path":"/f"},
		"cds_config":{"api_config_source":{"api_type":"REST","transport_api_version":"V2","cluster_names":["xds"],"refresh_delay":"60s"}},`, 1)
	c, err := bootstrap.Parse("envoy", []byte(doc), bootstrap.AllowV2())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Startup {
		if server := s.Source.Servers[0]; !server.TransportV2 {
			t.Errorf("%s: %+v", s.TypeURL, server)
		}
	}
	_, err = bootstrap.Parse("envoy", []byte(doc))
	for _, want := range []string{
		`lds_config.resource_api_version = "V2": version 2 of the xDS protocol is not supported`,
		`cds_config.api_config_source.transport_api_version = "V2": version 2 of the xDS protocol is not supported`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not allowed: %v, want %s", err, want)
		}
	}
}

// spec: V2-2
func TestValidateV2(t *testing.T) {
	server := bootstrap.ManagementServer{URI: "x:1", ChannelCreds: bootstrap.Insecure(), TransportV2: true}
	if err := (&bootstrap.Config{Servers: []bootstrap.ManagementServer{server}}).Validate(); err != nil {
		t.Error(err)
	}
	server.Carrier = &bootstrap.File{Path: "/f"}
	if err := (&bootstrap.Config{Servers: []bootstrap.ManagementServer{server}}).Validate(); err != nil {
		t.Error(err)
	}
}
