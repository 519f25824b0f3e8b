package bootstrap_test

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

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
		if c.Sources[0].Servers[0].TransportV2 || !c.WatchListeners {
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
	source := func(api corev3.ApiConfigSource_ApiType) *corev3.ConfigSource {
		s := &corev3.ApiConfigSource{ApiType: api, TransportApiVersion: v2}
		if api == corev3.ApiConfigSource_GRPC {
			s.GrpcServices = []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{
				GoogleGrpc: &corev3.GrpcService_GoogleGrpc{TargetUri: "x:1"},
			}}}
		}
		return &corev3.ConfigSource{
			ResourceApiVersion:    v2,
			ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: s},
		}
	}
	const boot = `{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"insecure"}]}]}`
	c, err := bootstrap.Parse("gRPC", []byte(boot), bootstrap.AllowV2())
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.ConfigSource(source(corev3.ApiConfigSource_GRPC))
	if err != nil || len(s.Servers) != 1 || !s.Servers[0].TransportV2 || !s.Servers[0].PerType {
		t.Errorf("%+v, %v", s, err)
	}
	if c.Servers[0].TransportV2 {
		t.Error("the server of the bootstrap is of version 2 without a word of it")
	}
	_, err = c.ConfigSource(source(corev3.ApiConfigSource_REST))
	if err == nil || !strings.Contains(err.Error(), `transport_api_version = "V2": version 2 is for gRPC alone`) {
		t.Errorf("REST: %v", err)
	}
}

// spec: V2-2
func TestValidateV2(t *testing.T) {
	server := bootstrap.ManagementServer{URI: "x:1", ChannelCreds: bootstrap.Insecure(), TransportV2: true}
	if err := (&bootstrap.Config{Servers: []bootstrap.ManagementServer{server}}).Validate(); err != nil {
		t.Error(err)
	}
	server.File = &bootstrap.FileConfig{Path: "/f"}
	err := (&bootstrap.Config{Servers: []bootstrap.ManagementServer{server}}).Validate()
	if err == nil || !strings.Contains(err.Error(), "Servers[0].TransportV2: version 2 is for gRPC alone") {
		t.Errorf("a file: %v", err)
	}
}
