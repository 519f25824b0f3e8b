package bootstrap_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// peer is a ConfigSource of JSON.
func peer(t testing.TB, text string) *corev3.ConfigSource {
	t.Helper()
	cs := &corev3.ConfigSource{}
	if err := protojson.Unmarshal([]byte(text), cs); err != nil {
		t.Fatal(err)
	}
	return cs
}

func loadSources(t testing.TB, opts ...bootstrap.Option) *bootstrap.Config {
	t.Helper()
	boot, err := bootstrap.Load("testdata/envoy_config_sources.yaml", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return boot
}

// spec: CFG-1 CFG-2 CFG-3 CFG-4
func TestConfigSource(t *testing.T) {
	insecure := bootstrap.Insecure()
	static := bootstrap.ManagementServer{URI: "dns:///xds-2.example:18000", ChannelCreds: insecure, HostAuthority: "xds-2"}
	dialled := bootstrap.ManagementServer{URI: "y:1", ChannelCreds: insecure}
	with := func(s bootstrap.ManagementServer, delta, perType bool) bootstrap.ManagementServer {
		s.Delta, s.PerType = delta, perType
		return s
	}
	const (
		toStatic  = `{"envoyGrpc":{"clusterName":"xds-2"}}`
		toDialled = `{"googleGrpc":{"targetUri":"y:1"}}`
	)
	api := func(typ, services string) string {
		return `{"apiConfigSource":{"apiType":"` + typ + `","grpcServices":[` + services + `]}}`
	}
	top := bootstrap.ManagementServer{URI: "top:1", ChannelCreds: insecure, Headers: []bootstrap.Header{{Key: "k", Value: "v"}}}
	boot := loadSources(t)
	boot.Servers = []bootstrap.ManagementServer{top}
	for name, c := range map[string]struct {
		source string
		want   bootstrap.Source
	}{
		"ads":  {`{"ads":{}}`, bootstrap.Source{Servers: []bootstrap.ManagementServer{top}}},
		"self": {`{"self":{"transportApiVersion":"V3"},"resourceApiVersion":"V3"}`, bootstrap.Source{Servers: []bootstrap.ManagementServer{top}}},
		"ads of authorities": {
			`{"ads":{},"authorities":[{"name":"a"},{"name":"b"}]}`,
			bootstrap.Source{Authorities: []string{"a", "b"}, Servers: []bootstrap.ManagementServer{top}},
		},
		"AGGREGATED_GRPC of ads": {
			`{"apiConfigSource":{"apiType":"AGGREGATED_GRPC","rateLimitSettings":{}}}`,
			bootstrap.Source{
				Servers: []bootstrap.ManagementServer{top},
				Notices: []string{"ConfigSource: api_config_source.rate_limit_settings: is not used; ads_config has its own"},
			},
		},
		"AGGREGATED_GRPC":       {api("AGGREGATED_GRPC", toStatic), bootstrap.Source{Servers: []bootstrap.ManagementServer{static}}},
		"AGGREGATED_DELTA_GRPC": {api("AGGREGATED_DELTA_GRPC", toStatic), bootstrap.Source{Servers: []bootstrap.ManagementServer{with(static, true, false)}}},
		"GRPC":                  {api("GRPC", toStatic), bootstrap.Source{Servers: []bootstrap.ManagementServer{with(static, false, true)}}},
		"DELTA_GRPC":            {api("DELTA_GRPC", toStatic), bootstrap.Source{Servers: []bootstrap.ManagementServer{with(static, true, true)}}},
		"fallback": {
			api("AGGREGATED_GRPC", toDialled+","+toStatic),
			bootstrap.Source{Servers: []bootstrap.ManagementServer{dialled, static}},
		},
		"notices": {
			`{"initialFetchTimeout":"1s","apiConfigSource":{"apiType":"AGGREGATED_GRPC","rateLimitSettings":{},"configValidators":[{"name":"v"}],"grpcServices":[{"envoyGrpc":{"clusterName":"xds-1"}}]}}`,
			bootstrap.Source{
				Servers: []bootstrap.ManagementServer{{
					URI: "dns:///192.0.2.1:18000", ChannelCreds: insecure, HostAuthority: "xds-1",
					RateLimit: &bootstrap.RateLimit{MaxTokens: 100, FillRate: 10},
				}},
				InitialFetchTimeout: time.Second,
				Notices: []string{
					"ConfigSource: api_config_source.config_validators: is not used; a program may have guards of its own",
					"testdata/envoy_config_sources.yaml: static_resources.clusters[1].load_assignment: 2 endpoints are given; only the first of the best priority is used",
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := boot.ConfigSource(peer(t, c.source))
			if err != nil {
				t.Fatal(err)
			}
			if c.want.InitialFetchTimeout == 0 {
				c.want.InitialFetchTimeout = 15 * time.Second
			}
			if diff := cmp.Diff(c.want, got, sameConfig); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// spec: CFG-1 CFG-4 CFG-5
func TestConfigSourceFaults(t *testing.T) {
	const at = "ConfigSource: api_config_source"
	envoy := loadSources(t)
	grpc := parse(t, `{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"insecure"}]}]}`)
	written := &bootstrap.Config{Servers: []bootstrap.ManagementServer{{URI: "x:1", ChannelCreds: bootstrap.Insecure()}}}
	for name, c := range map[string]struct {
		boot         *bootstrap.Config
		source, want string
	}{
		"empty": {envoy, `{}`, "ConfigSource: names no source"},
		"path":  {envoy, `{"path":""}`, `ConfigSource: path = "": must not be empty`},
		"file": {
			envoy, `{"pathConfigSource":{"watchedDirectory":{}}}`,
			"ConfigSource: path_config_source.path: required\nConfigSource: path_config_source.watched_directory.path: required",
		},
		"ads without servers": {envoy, `{"ads":{}}`, "ConfigSource: ads: means the top-level servers, of which the bootstrap has none"},
		"AGGREGATED_GRPC without servers": {
			envoy, `{"apiConfigSource":{"apiType":"AGGREGATED_GRPC"}}`, at + ": means the top-level servers, of which the bootstrap has none",
		},
		"version 2": {
			grpc, `{"ads":{},"resourceApiVersion":"V2"}`,
			`ConfigSource: resource_api_version = "V2": version 2 of the xDS protocol is not supported; want V3`,
		},
		"authorities": {
			grpc, `{"ads":{},"authorities":[{"name":"a"},{},{"name":"a"}]}`,
			"ConfigSource: authorities[1].name: required\n" + `ConfigSource: authorities[2].name = "a": is named twice`,
		},
		"REST": {
			grpc, `{"apiConfigSource":{"apiType":"REST","clusterNames":["c"],"refreshDelay":"1s"}}`,
			at + `.cluster_names[0] = "c": no cluster in static_resources has this name`,
		},
		"unknown type": {
			grpc, `{"apiConfigSource":{"apiType":77,"grpcServices":[{"googleGrpc":{"targetUri":"y:1"}}]}}`,
			at + `.api_type = 77: want AGGREGATED_GRPC, AGGREGATED_DELTA_GRPC, GRPC, DELTA_GRPC or REST`,
		},
		"no type": {
			grpc, `{"apiConfigSource":{"grpcServices":[{"googleGrpc":{}}]}}`,
			at + `.api_type: required: AGGREGATED_GRPC, AGGREGATED_DELTA_GRPC, GRPC, DELTA_GRPC or REST` + "\n" +
				at + `.grpc_services[0].google_grpc.target_uri: required`,
		},
		"cluster, in gRPC's format": {
			grpc, `{"apiConfigSource":{"apiType":"GRPC","grpcServices":[{"envoyGrpc":{"clusterName":"c"}}]}}`,
			at + `.grpc_services[0].envoy_grpc.cluster_name = "c": no cluster in static_resources has this name`,
		},
		"cluster, in a Config of the program": {
			written, `{"apiConfigSource":{"apiType":"GRPC","grpcServices":[{"envoyGrpc":{}}]}}`,
			at + `.grpc_services[0].envoy_grpc.cluster_name: required`,
		},
		"cluster by EDS": {
			envoy, `{"apiConfigSource":{"apiType":"GRPC","grpcServices":[{"envoyGrpc":{"clusterName":"local"}}]}}`,
			`testdata/envoy_config_sources.yaml: static_resources.clusters[0].type = "EDS": the cluster of a management server must be STATIC, STRICT_DNS or LOGICAL_DNS` + "\n" +
				`testdata/envoy_config_sources.yaml: static_resources.clusters[0].load_assignment: required`,
		},
		"secrets": {
			grpc, `{"apiConfigSource":{"apiType":"GRPC","grpcServices":[{"googleGrpc":{"targetUri":"y:1","channelCredentials":{"sslCredentials":` +
				`{"privateKey":{"inlineString":"s3cret"}}}},"initialMetadata":[{"key":"x-bin","value":"s3cret!"}]}]}}`,
			at + ".grpc_services[0].google_grpc.channel_credentials.ssl_credentials.cert_chain: required with private_key\n" +
				at + ".grpc_services[0].initial_metadata[0].value: want base64",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := c.boot.ConfigSource(peer(t, c.source))
			if err == nil {
				t.Fatalf("accepted: %+v", s)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("error text, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(bootstrap.Source{}, s); diff != "" {
				t.Errorf("a Source beside an error, -want +got:\n%s", diff)
			}
		})
	}
	for name, cs := range map[string]*corev3.ConfigSource{
		"nil":       nil,
		"not UTF-8": {ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: "\xff"}}},
	} {
		_, err := grpc.ConfigSource(cs)
		if e, ok := errors.AsType[*bootstrap.FieldError](err); !ok || e.Source != "ConfigSource" {
			t.Errorf("%s: error %v, want one of the ConfigSource", name, err)
		}
	}
	if _, err := grpc.ConfigSource(peer(t, `{"ads":{}}`), bootstrap.WithChannelCreds("", nil)); err == nil {
		t.Error("a bad option is accepted")
	}
}

// Of an extension only the type is read, so that it need not be linked in; and the options
// of the parsing hold for sources that come later.
func TestConfigSourceExtensions(t *testing.T) {
	const url = "type.googleapis.com/envoy.extensions.grpc_service.channel_credentials."
	plugins := func(urls ...string) *corev3.ConfigSource {
		g := &corev3.GrpcService_GoogleGrpc{TargetUri: "y:1"}
		for _, url := range urls {
			g.ChannelCredentialsPlugin = append(g.ChannelCredentialsPlugin, &anypb.Any{TypeUrl: url, Value: []byte{8, 1}})
		}
		return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType:      corev3.ApiConfigSource_AGGREGATED_GRPC,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: g}}},
		}}}
	}
	google := bootstrap.WithChannelCreds("google_default", func(json.RawMessage) (credentials.Bundle, error) { return nil, nil })
	with, without := loadSources(t, google), loadSources(t)
	for _, c := range []struct {
		boot *bootstrap.Config
		opts []bootstrap.Option
		cs   *corev3.ConfigSource
		want string
	}{
		{without, nil, plugins("x/example.Unknown", url+"insecure.v3.InsecureCredentials"), "insecure"},
		{with, nil, plugins(url + "google_default.v3.GoogleDefaultCredentials"), "google_default"},
		{without, []bootstrap.Option{google}, plugins(url + "google_default.v3.GoogleDefaultCredentials"), "google_default"},
	} {
		s, err := c.boot.ConfigSource(c.cs, c.opts...)
		if err != nil || s.Servers[0].ChannelCreds.Type != c.want {
			t.Errorf("%v, %v; want %s", s, err, c.want)
		}
	}
	if s, err := without.ConfigSource(plugins(url + "google_default.v3.GoogleDefaultCredentials")); err == nil {
		t.Errorf("%v: google_default is known without the option", s)
	}
}

// What is done to a source does not show in the bootstrap, and many may ask at once.
func TestConfigSourceShares(t *testing.T) {
	boot := loadSources(t)
	boot.Servers = []bootstrap.ManagementServer{{URI: "top:1", Headers: []bootstrap.Header{{Key: "k", Value: "v"}}}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := boot.ConfigSource(peer(t, `{"ads":{}}`))
			if err != nil {
				t.Error(err)
				return
			}
			s.Servers[0].Headers[0].Value = "changed"
		})
		wg.Go(func() {
			if _, err := boot.ConfigSource(peer(t, `{"apiConfigSource":{"apiType":"GRPC","grpcServices":[{"envoyGrpc":{"clusterName":"xds-1"}}]}}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if boot.Servers[0].Headers[0].Value != "v" {
		t.Error("the bootstrap's server was changed")
	}
}
