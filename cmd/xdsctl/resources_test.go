package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
	"github.com/xdswatch/xdswatch/testutil"
)

// read writes a file and says what is read of it.
func read(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	rs, err := resources.Read(path)
	var names []string
	for _, r := range rs {
		if r.File != path {
			t.Errorf("%s is of file %q", r.Name, r.File)
		}
		names = append(names, fmt.Sprintf("%s:%s@%s", subscription.Short(r.Type), r.Name, r.Version))
	}
	text := strings.Join(names, " ")
	if err != nil {
		text = strings.TrimSuffix(strings.ReplaceAll(err.Error(), path, "FILE")+"; "+text, "; ")
	}
	return text
}

// Every format of a file is read, and so is what stands in a Resource, a list, or a document.
func TestRead(t *testing.T) {
	unknown := &discoveryv3.Resource{Name: "u", Version: "9", Resource: &anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte("x")}}
	response := testutil.SotW("", "7", "", &clusterv3.Cluster{Name: "a"}, testutil.Wrapped("named", "8", &corev3.TypedExtensionConfig{Name: "inner"}), unknown)
	as := resourcejson.Options{}
	asJSON := as.Any("type.googleapis.com/envoy.service.discovery.v3.DiscoveryResponse", response)
	for _, name := range []string{"x.pb", "x.pb_text", "x.json", "x.yaml"} {
		content, err := asJSON, error(nil) // which has a form for the unknown type
		if name == "x.pb" || name == "x.pb_text" {
			content, err = testutil.EncodeFile(name, response)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, name, content); got != "cds:a@7 ecds:named@8 Type:u@9" {
			t.Errorf("%s: %s", name, got)
		}
	}
	const cluster = `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a"}`
	for content, want := range map[string]string{
		cluster:             "cds:a@",
		"\uFEFF" + cluster:  "cds:a@",
		"[" + cluster + "]": "cds:a@",
		"---\n" + cluster + "\n--- # next\n\"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\nclusterName: b\n": "cds:a@ eds:b@",
		`{"versionInfo": "3", "resources": [` + cluster + `]}`:                                                                              "cds:a@3",
		`[{"type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "gone", "resource": null}]`:                               "",
		`[{"type": "type.googleapis.com/no.such.Type", "name": "n", "resource": {"@type": "x", "value": "AA=="}}]`:                          "Type:n@",
		`{"@type": "type.googleapis.com/no.such.Type", "a": 1}`:                                                                             `FILE: the type "type.googleapis.com/no.such.Type" is not known here; Type:@`,
		`{"resources": [{"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", "name": "empty"}]}`:                            `FILE: resources[0]: the Resource "empty" holds no resource`,
		`{"resources": [{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": 12}]}`:                                     "FILE: resources[0]: type.googleapis.com/envoy.config.cluster.v3.Cluster: name: invalid value for string field name",
		`{"resources": [{"name": "a"}]}`: `FILE: resources[0]: without "@type"`,
		`{"typeUrl": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "resources": [` + cluster + `, {"@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "name": "e"}]}`: "FILE: resources[1]: type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig: not of the type of its response; cds:a@ ecds:e@",
		// What is good is read beside what is bad.
		cluster + "\n---\nx: 1\n---\n" + cluster: `FILE: document 2: neither a resource with "@type", nor a DiscoveryResponse with resources, nor a config dump with configs; cds:a@ cds:a@`,
		"a: [":                                   "FILE: yaml: line 1: did not find expected node content",
		"- - a":                                  "FILE: [0]: not a resource",
		"":                                       "",
	} {
		if got := read(t, "x.yaml", []byte(content)); got != want {
			t.Errorf("%s:\n%s\nwant %s", content, got, want)
		}
	}
}

// A resource of another type than its response is refused in each format.
func TestReadTypes(t *testing.T) {
	response := testutil.SotW("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "7", "", &clusterv3.Cluster{Name: "a"})
	for _, name := range []string{"x.pb", "x.pb_text", "x.json", "x.yaml"} {
		content, err := testutil.EncodeFile(name, response)
		if err != nil {
			t.Fatal(err)
		}
		const want = "FILE: resources[0]: type.googleapis.com/envoy.config.cluster.v3.Cluster: not of the type of its response; cds:a@7"
		if got := read(t, name, content); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Nothing of a file is passed over: not what stands beside a marker of YAML or after a value, and no key
// that is given twice. What the library quotes is not told.
//
// spec: H-3
func TestReadWholly(t *testing.T) {
	const a = `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a"}`
	const head = "\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
	for content, want := range map[string]string{
		"--- " + a + "\n--- " + a + " # one\n": "cds:a@ cds:a@",
		a + "\n...\n" + a:                      "cds:a@ cds:a@",
		a + a + "\n" + a + "\n":                "cds:a@ cds:a@ cds:a@",
		a + " x":                               "FILE: yaml: did not find expected <document start>",
		head + "name: a\nname: MARK3R\n":       "FILE: yaml: line 3: a key is there twice",
		"metadata: &m {filterMetadata: {}}\n" + head + "<<: {name: b}\nname: a\n": "cds:a@",
		head + "name: *MARK3R\n":      "FILE: yaml: an alias of an anchor that there is not",
		head + "name: &a [*a]\n":      "FILE: yaml: line 2: an anchor contains itself",
		head + "? [MARK3R]\n: name\n": "FILE: yaml: line 2: a key that is no text",
		head + "name: a\ncommon_lb_config: {healthy_panic_threshold: {value: .inf}}\n": "cds:a@",
		head + "# <<\nname: a\nname: MARK3R\n":                                         "FILE: yaml: line 4: a key is there twice",
	} {
		if got := read(t, "x.yaml", []byte(content)); got != want {
			t.Errorf("%s:\n%s\nwant %s", content, got, want)
		}
	}
}

// What cannot be read of a resource is told with its place in it, in the spelling of the file. A key that
// cannot be the name of a field may be a secret in a wrong place.
//
// spec: H-3
func TestReadPlaces(t *testing.T) {
	const listener = `{"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "l", `
	const hcm = `{"name": "m", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", `
	for text, want := range map[string]string{
		`"filter_chains": [{"x": 1}], "filter_chains": {}}`:                          `filter_chains[0].x: unknown field "x"`,
		`"address": {"-----BEGIN MARK3R": "x"}}`:                                     `address: unknown field`,
		`"nmae": 1}`:                                                                 `nmae: unknown field "nmae"`,
		`"address": {"pipe": {"path": 1}}}`:                                          `address.pipe.path: invalid value for string field path`,
		`"filter_chains": [{}, {"filters": {}}]}`:                                    `filter_chains[1].filters: syntax error unexpected token`,
		`"metadata": {"filterMetadata": {"a.b": [1]}}}`:                              `metadata.filterMetadata["a.b"]: syntax error unexpected token`,
		`"filter_chains": [{"filters": [{}, ` + hcm + `"stat": "é", "rds": {}}}]}]}`: `filter_chains[0].filters[1].typed_config.stat: unknown field "stat"`,
		`"filter_chains": [{"filters": [` + hcm + `"http_filters": [{"typed_config": {"x": 1, "@type": "type.googleapis.com/no.Such"}}]}}]}]}`: `filter_chains[0].filters[0].typed_config.http_filters[0].typed_config: the type "type.googleapis.com/no.Such" is not known here; lds:l@`,
		`"filter_chains": [{"filters": [{"typed_config": {"@type": "type.googleapis.com/no.Such", "value": {"MARK3R": 1}}}]}]}`:                `filter_chains[0].filters[0].typed_config: the type "type.googleapis.com/no.Such" is not known here; lds:l@`,
		`"filter_chains": [{"filters": [{"typed_config": {"@type": "type.googleapis.com/no.Such"}}]}]}`:                                        `filter_chains[0].filters[0].typed_config: the type "type.googleapis.com/no.Such" is not known here; lds:l@`,
		`"filter_chains": [{"filters": [{"typed_config": {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "MARK3R"}}]}]}`:    `filter_chains[0].filters[0].typed_config.value: invalid google.protobuf.Duration value`,
	} {
		got := read(t, "x.json", []byte(listener+text))
		if want = "FILE: type.googleapis.com/envoy.config.listener.v3.Listener: " + want; got != want {
			t.Errorf("%s:\n%s\nwant %s", text, got, want)
		}
	}
}

// Aliases of a large string stand for no more than a file may hold.
//
// spec: H-10
func TestReadAliases(t *testing.T) {
	const cluster = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster`
	for repeat, want := range map[int]string{
		2:     "cds:a@",
		20000: "FILE: yaml: it stands for more than 69349504 bytes",
	} {
		if repeat > 2 && testing.Short() {
			continue // long: as much as a document may stand for
		}
		text := cluster + "\nname: &a a\nalt_stat_name: &b " + strings.Repeat("b", 20000) +
			"\nload_assignment: {cluster_name: *a, endpoints: [{lb_endpoints: [" + strings.Repeat("{endpoint: {hostname: *b}},", repeat) + "]}]}\n"
		if got := read(t, "x.yaml", []byte(text)); got != want {
			t.Errorf("%d times: %s, want %s", repeat, got, want)
		}
	}
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestReferences(t *testing.T) {
	ads := &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
	hcm := packed(t, &hcmv3.HttpConnectionManager{RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: "r"}}})
	tls := packed(t, &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: "s", SdsConfig: ads}, {Name: "local"}},
	}})
	for want, m := range map[string]proto.Message{
		"rds:r rds:r": &listenerv3.Listener{
			ApiListener:  &listenerv3.ApiListener{ApiListener: hcm},
			FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: hcm}}}}},
		},
		"eds:c": &clusterv3.Cluster{Name: "c", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}},
		"eds:service sds:s": &clusterv3.Cluster{
			Name: "c", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{ServiceName: "service"},
			TransportSocket:  &corev3.TransportSocket{ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls}},
		},
		"cds:authz cds:keys": &listenerv3.Listener{ListenerFilters: []*listenerv3.ListenerFilter{
			{ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(t, &corev3.GrpcService{
				TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "authz"}},
			})}},
			{ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(t, &corev3.HttpUri{HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: "keys"}})}},
		}},
		"rds:scoped": &routev3.ScopedRouteConfiguration{Name: "sc", RouteConfigurationName: "scoped"},
		"":           &clusterv3.Cluster{Name: "static"},
	} {
		var got []string
		for _, r := range resources.References(m) {
			got = append(got, subscription.Short(r.Type)+":"+r.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
