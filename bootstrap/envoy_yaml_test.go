package bootstrap_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
)

const adsInYAML = "dynamic_resources: {ads_config: {api_type: GRPC, grpc_services: [{google_grpc: {target_uri: \"x:1\"}}]}}\n"

// YAML is read as Envoy reads it: keys are the text that is written, what is marked !ignore is left out, and a
// number is what has no other form.
//
// spec: BOOTE-1
func TestEnvoyYAML(t *testing.T) {
	for name, c := range map[string]struct{ metadata, want string }{
		"words of YAML 1.1 as keys":   {"y: 1, on: 2, off: 3", `{"off":3,"on":2,"y":1}`},
		"a word beside what it means": {`on: 1, "true": 2`, `{"on":1,"true":2}`},
		"numbers as keys":             {"010: 1, 0x10: 2, 1_0: 3, 1.10: 4", `{"010":1,"0x10":2,"1.10":4,"1_0":3}`},
		"null as a key":               {"null: 1", `{"null":1}`},
		"ignored":                     {"!ignore a: 1, b: 2", `{"b":2}`},
		"no numbers":                  {"a: 1_000, b: 0b11, c: 0o17", `{"a":"1_000","b":"0b11","c":"0o17"}`},
		"more than 32 bits":           {"a: 3000000000", `{"a":"3000000000"}`},
	} {
		t.Run(name, func(t *testing.T) {
			boot, err := bootstrap.Parse("b", []byte("node: {id: a, cluster: b, metadata: {"+c.metadata+"}}\n"+adsInYAML))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(boot.Node.GetMetadata().AsMap())
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
	t.Run("ignored at the top", func(t *testing.T) {
		boot, err := bootstrap.Parse("b", []byte("!ignore parts:\n- &id {id: a, cluster: b}\nnode: *id\n"+adsInYAML))
		if err != nil || boot.Node.GetId() != "a" {
			t.Errorf("%v, %v", boot, err)
		}
	})
}

// A source that another is asked in place of is told of.
//
// spec: AUTH-1
func TestLocatorOfAnotherSource(t *testing.T) {
	boot, err := bootstrap.Parse("b", []byte("node: {id: a, cluster: b}\n"+strings.TrimSuffix(adsInYAML, "}\n")+
		`, cds_config: {path: /x}, cds_resources_locator: "xdstp://a/envoy.config.cluster.v3.Cluster/x/*"}`+"\n"+
		"config_sources: [{authorities: [{name: a}], api_config_source: {api_type: AGGREGATED_DELTA_GRPC, grpc_services: [{google_grpc: {target_uri: z}}]}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "b: dynamic_resources.cds_config: is not used: another config source answers for the locator's authority"; !slices.Contains(boot.Notices, want) {
		t.Errorf("the notices are %q, want %q", boot.Notices, want)
	}
}

// A collection that no source answers for is told of.
//
// spec: BOOTE-1
func TestLocatorWithoutSource(t *testing.T) {
	const notice = "dynamic_resources.cds_resources_locator: no source answers for its authority: want cds_config, or a config source that names the authority"
	const asked = `, cds_resources_locator: "xdstp://a/envoy.config.cluster.v3.Cluster/x/*"`
	for c, want := range map[[2]string]bool{
		{"", ""}:                         true,
		{", cds_config: {ads: {}}", ""}:  false,
		{", cds_config: {path: /x}", ""}: false,
		{", cds_config: {path: /x, authorities: [{name: elsewhere}]}", ""}:                                                                                                         true,
		{"", "config_sources: [{authorities: [{name: a}], api_config_source: {api_type: AGGREGATED_DELTA_GRPC, grpc_services: [{google_grpc: {target_uri: z}}]}}]\n"}:              false,
		{"", "config_sources: [{authorities: [{name: elsewhere}], api_config_source: {api_type: AGGREGATED_DELTA_GRPC, grpc_services: [{google_grpc: {target_uri: z}}]}}]\n"}:      true,
		{"", "default_config_source: {authorities: [{name: elsewhere}], api_config_source: {api_type: AGGREGATED_DELTA_GRPC, grpc_services: [{google_grpc: {target_uri: z}}]}}\n"}: false,
	} {
		doc := "node: {id: a, cluster: b}\n" + strings.TrimSuffix(adsInYAML, "}\n") + asked + c[0] + "}\n" + c[1]
		boot, err := bootstrap.Parse("b", []byte(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		if got := slices.Contains(boot.Notices, "b: "+notice); got != want {
			t.Errorf("%s: the notices are %q", doc, boot.Notices)
		}
	}
}
