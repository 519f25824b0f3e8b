package bootstrap_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/xdswatch/xdswatch/bootstrap"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
)

var sameConfig = cmp.Options{
	protocmp.Transform(), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(bootstrap.Config{}),
	cmp.FilterValues(func(a, b []string) bool { return slices.ContainsFunc(slices.Concat(a, b), ofMissingFile) },
		cmp.Transformer("withoutMissing", func(list []string) []string { return slices.DeleteFunc(slices.Clone(list), ofMissingFile) })),
}

// ofMissingFile is whether a notice is of a file that is not there, as few are in these tests.
func ofMissingFile(notice string) bool { return strings.Contains(notice, " cannot be opened now: ") }

// The same bootstrap twice: YAML with the names of protobuf, and JSON with lowerCamelCase
// names, enums as numbers and a port as text.
//
// spec: BOOTE-1 BOOTE-2 BOOTE-3
func TestEnvoyStaticCluster(t *testing.T) {
	metadata, err := structpb.NewStruct(map[string]any{"role": "gateway", "weight": 3})
	if err != nil {
		t.Fatal(err)
	}
	want := &bootstrap.Config{
		Node: &corev3.Node{
			Id: "edge-1", Cluster: "edge", Metadata: metadata, UserAgentName: "my-proxy",
			Locality: &corev3.Locality{Region: "eu", Zone: "eu-a"},
		},
		Servers: []bootstrap.ManagementServer{{
			URI: "dns:///xds.example:18000",
			ChannelCreds: bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{
				CACertificateFile: "/certs/ca.crt",
				CertificateFile:   "/certs/tls.crt",
				PrivateKeyFile:    "/certs/tls.key",
				ServerName:        "xds.internal",
				SubjectAltNames:   []string{"xds.internal", "spiffe://example/xds"},
			}},
			Delta: true,
			Headers: []bootstrap.Header{
				{Key: "x-tenant", Value: "shop"}, {Key: "trace-bin", Value: "\x01\x02"},
			},
			HostAuthority: "xds.internal",
			RetryBase:     250 * time.Millisecond,
			RetryMax:      8 * time.Second,
		}},
		ClientDefaultListenerTemplate: "%s",
		Startup: []bootstrap.Subscription{
			{TypeURL: clustersType, Collection: "*", InitialFetchTimeout: 15 * time.Second},
			{TypeURL: listenersType, Collection: "*", InitialFetchTimeout: 15 * time.Second},
		},
	}
	for _, file := range []string{"testdata/envoy_static_cluster.yaml", "testdata/envoy_static_cluster.json"} {
		got, err := bootstrap.Load(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if diff := cmp.Diff(want, got, sameConfig); diff != "" {
			t.Errorf("%s: -want +got:\n%s", file, diff)
		}
	}
}

// spec: BOOTE-2 BOOTE-3 BACKOFF-1
func TestEnvoyGoogleGRPC(t *testing.T) {
	got, err := bootstrap.Load("testdata/envoy_google_grpc.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &bootstrap.Config{
		Node: &corev3.Node{Id: "edge-2", Cluster: "edge"},
		Servers: []bootstrap.ManagementServer{{
			URI: "dns:///xds-1.example:443",
			ChannelCreds: bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{
				CACertificate:   []byte("PEM of the roots"),
				CertificateFile: "/certs/tls.crt",
				PrivateKey:      []byte("PEM of the key"),
			}},
			RetryBase: time.Second,
			RetryMax:  10 * time.Second,
			RateLimit: &bootstrap.RateLimit{MaxTokens: 100, FillRate: 10},
		}, {
			URI: "unix:/run/xds.sock", ChannelCreds: bootstrap.Insecure(),
			RateLimit: &bootstrap.RateLimit{MaxTokens: 100, FillRate: 10},
		}},
		ClientDefaultListenerTemplate: "%s",
		Startup: []bootstrap.Subscription{
			{TypeURL: clustersType, Collection: "*", InitialFetchTimeout: 5 * time.Second},
			{TypeURL: listenersType, Collection: "*", InitialFetchTimeout: 15 * time.Second, Source: &bootstrap.Source{
				Servers: []bootstrap.ManagementServer{{
					URI: "file:///etc/envoy/lds.yaml", Carrier: &bootstrap.File{Path: "/etc/envoy/lds.yaml"},
				}},
				InitialFetchTimeout: 15 * time.Second,
			}},
		},
	}
	if diff := cmp.Diff(want, got, sameConfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestEnvoyChecks has an input for each configuration check of Envoy's that concerns what
// is read here, and says of the others whose they are.
//
// spec: CFG-2 CFG-4 CFG-5 BOOTE-4 AUTH-2
func TestEnvoyChecks(t *testing.T) {
	const (
		later = "ads_config is not replaced while the client runs"
	)
	elsewhere := map[string]string{
		"envoy-ads-replace-api-type":   later,
		"envoy-ads-replace-validators": later,
		"envoy-ads-replace-cluster":    later,
		"envoy-file-missing":           "files of resources are opened by what watches them",
	}
	const grpc = `"api_type":"GRPC","grpc_services":[{"google_grpc":{"target_uri":"x:1"}}]`
	const service = `{"google_grpc":{"target_uri":"x:1"}}`
	const at = "envoy: dynamic_resources.ads_config"
	const aggregated = `"api_type":"AGGREGATED_DELTA_GRPC","grpc_services":[` + service + `]`
	sources := func(fields string) string { return `{"node":{"id":"a","cluster":"b"},` + fields + `}` }
	doc := func(ads string) string {
		return `{"node":{"id":"a","cluster":"b"},"dynamic_resources":{"ads_config":{` + ads + `}}}`
	}
	const lds = "envoy: dynamic_resources.lds_config.api_config_source"
	own := func(source string) string {
		return sources(`"dynamic_resources":{"lds_config":{"api_config_source":{` + source + `}}},"static_resources":{"clusters":[` + restCluster + `]}`)
	}
	here := map[string]struct{ doc, err string }{
		"envoy-node-required": {
			`{"node":{"id":""},"dynamic_resources":{"ads_config":{` + grpc + `}}}`,
			"envoy: node.id = \"\": must not be empty\nenvoy: node.cluster: required",
		},
		"envoy-default-source-no-authority": {
			sources(`"default_config_source":{"api_config_source":{` + aggregated + `}}`), "",
		},
		"envoy-source-needs-authority": {
			sources(`"config_sources":[{"api_config_source":{` + aggregated + `}}]`),
			"envoy: config_sources[0].authorities: required: at least one",
		},
		"envoy-authority-in-two-places": {
			sources(`"config_sources":[{"authorities":[{"name":"x"}],"api_config_source":{` + aggregated + `}}],` +
				`"default_config_source":{"authorities":[{"name":"x"}],"api_config_source":{` + aggregated + `}}`), "",
		},
		"envoy-source-ads-specifier": {
			sources(`"config_sources":[{"authorities":[{"name":"x"}],"ads":{}}],"default_config_source":{"ads":{}}`),
			"envoy: config_sources[0].ads: want api_config_source\n" +
				"envoy: default_config_source.ads: want api_config_source",
		},
		"envoy-source-non-aggregated": {
			sources(`"config_sources":[{"authorities":[{"name":"x"}],"api_config_source":{` + grpc + `}}]`),
			`envoy: config_sources[0].api_config_source.api_type = "GRPC": want AGGREGATED_GRPC or AGGREGATED_DELTA_GRPC`,
		},
		"envoy-xdstp-collection-type": {
			`{"node":{"id":"a","cluster":"b"},"dynamic_resources":{"ads_config":{` + grpc + `},` +
				`"lds_resources_locator":"xdstp://a/envoy.config.cluster.v3.Cluster/x/*"}}`,
			`envoy: dynamic_resources.lds_resources_locator = "xdstp://a/envoy.config.cluster.v3.Cluster/x/*": want an xdstp URL of a collection: ` +
				`of type envoy.config.listener.v3.Listener with an id that ends in "/*", or of type envoy.config.listener.v3.ListenerCollection; or the URL of a file`,
		},
		"envoy-rest-no-cluster": {
			own(`"api_type":"REST","refresh_delay":"1s"`), lds + ".cluster_names: required with REST: at least one cluster",
		},
		"envoy-rest-no-refresh": {
			own(`"api_type":"REST","cluster_names":["c"]`), lds + ".refresh_delay: required with REST, more than 0",
		},
		// Accepted, unlike in Envoy: the client falls back within each source, and streams
		// are shared by who asks the same server.
		"envoy-failover-non-ads":     {own(`"api_type":"GRPC","grpc_services":[` + service + `,` + service + `]`), ""},
		"envoy-singleton-aggregated": {own(aggregated), ""},
		"envoy-grpc-no-cluster":      {doc(`"api_type":"GRPC"`), at + ".grpc_services: required: one gRPC service"},
		// Two are accepted: Envoy has them behind a switch.
		"envoy-grpc-two-services": {doc(`"api_type":"GRPC","grpc_services":[` + service + `,` + service + `]`), ""},
		"envoy-grpc-three-services": {
			doc(`"api_type":"GRPC","grpc_services":[` + service + `,` + service + `,` + service + `]`),
			at + ".grpc_services: 3 gRPC services are given; want one, or two for failover",
		},
		"envoy-grpc-with-cluster-names": {
			doc(grpc + `,"cluster_names":["c"]`),
			at + ".cluster_names: cluster_names belongs to REST; want grpc_services",
		},
		"envoy-version-v2": {
			doc(grpc + `,"transport_api_version":"V2"`),
			at + `.transport_api_version = "V2": version 2 of the xDS protocol is not supported; want V3`,
		},
		"envoy-version-auto": {doc(grpc + `,"transport_api_version":"AUTO"`), ""},
		"envoy-retry-inverted": {
			doc(`"api_type":"GRPC","grpc_services":[{"google_grpc":{"target_uri":"x:1"},` +
				`"retry_policy":{"retry_back_off":{"base_interval":"2s","max_interval":"1.5s"}}}]`),
			at + `.grpc_services[0].retry_policy.retry_back_off.max_interval = "1.5s": must not be less than base_interval`,
		},
		"envoy-rate-unset": {doc(grpc), ""},
		"envoy-rate-empty": {doc(grpc + `,"rate_limit_settings":{}`), ""},
	}
	_, _, checks := readCases(t)
	for _, id := range checks {
		t.Run(id, func(t *testing.T) {
			c, ok := here[id]
			if !ok && elsewhere[id] == "" {
				t.Fatal("not covered")
			}
			if ok {
				wantError(t, c.doc, c.err)
			}
		})
	}
}

// wantError parses a document as "envoy" and compares the whole error text; "" is none.
func wantError(t *testing.T, doc, want string) {
	t.Helper()
	boot, err := bootstrap.Parse("envoy", []byte(doc))
	got := ""
	if err != nil {
		got = err.Error()
	} else if err := boot.Validate(); err != nil {
		t.Errorf("accepted, but Validate: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error text, -want +got:\n%s", diff)
	}
}

// A locator names a part, so that not every resource is asked for. Who answers for the rest answers for
// an authority that no other source names.
//
// spec: BOOTE-2 AUTH-1
func TestEnvoyLocator(t *testing.T) {
	const shared = `"api_config_source":{"api_type":"AGGREGATED_GRPC","grpc_services":[{"google_grpc":{"target_uri":"y:1"}}]}`
	for other, answers := range map[string]bool{
		``: true,
		`,"default_config_source":{` + shared + `}`:                         false,
		`,"config_sources":[{"authorities":[{"name":"a"}],` + shared + `}]`: false,
		`,"config_sources":[{"authorities":[{"name":"b"}],` + shared + `}]`: true,
	} {
		boot := parse(t, `{"node":{"id":"a","cluster":"b"},"dynamic_resources":{
			"lds_config":{"ads":{}},"lds_resources_locator":"xdstp://a/envoy.config.listener.v3.Listener/x/*",
			"ads_config":{"api_type":"AGGREGATED_DELTA_GRPC","grpc_services":[{"google_grpc":{"target_uri":"x:1"}}]}}`+other+`}`)
		want := []bootstrap.Subscription{{
			TypeURL: listenersType, Collection: "xdstp://a/envoy.config.listener.v3.Listener/x/*", InitialFetchTimeout: 15 * time.Second,
		}}
		if diff := cmp.Diff(want, boot.Startup, sameConfig); diff != "" || !boot.Servers[0].Delta {
			t.Errorf("%s: delta %t; startup, -want +got:\n%s", other, boot.Servers[0].Delta, diff)
		}
		a, ok := boot.Authorities["a"]
		if ok != answers {
			t.Errorf("%s: ads_config answers %t, want %t", other, ok, answers)
		} else if diff := cmp.Diff(boot.Servers, a.Servers, sameConfig); ok && diff != "" {
			t.Errorf("%s: the servers, -want +got:\n%s", other, diff)
		}
		if boot.Notices != nil {
			t.Errorf("%s: notices %q", other, boot.Notices)
		}
	}
}
