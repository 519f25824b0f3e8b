package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/testutil/script"
)

// notScripts are the scenarios of reference clients' own tests that no script follows, and
// why. Everything else of the first tier is a script with a case header.
var notScripts = map[string]string{
	"ev-sotw-add-remove":        "changes that cancel out before a message leaves need none here; stream-coalesce shows it",
	"ev-mux-rate-empty":         "a bucket of a hundred tokens is no exchange to write down; TestRate shows it",
	"ev-mux-replace-source":     "another server is another stream that is told nothing of the first; ack-other-server shows it",
	"ev-alias-update":           "alias-watch shows it",
	"odcds-first-starts":        "nothing is held back until a first answer; stream-never-waits-delta shows it",
	"ev-fo-one-failure":         "Envoy's failover after two failures in a row is not followed: gRFC A71 falls back with the first",
	"ev-fo-two-failures":        "Envoy's failover after two failures in a row is not followed: gRFC A71 falls back with the first",
	"ev-fo-primary-sticky":      "Envoy's failover for good is not followed: gRFC A71 falls back whenever something is lacking",
	"ev-fo-failover-available":  "Envoy's alternating between two servers is not followed: gRFC A71 asks the first one all the while",
	"ev-wm-failed":              "a refused resource is told to its own watches only; ack-partial-sotw shows it",
	"ev-wm-remove-in-callback":  "callbacks are the engine's: the machine calls nobody",
	"go-errors-node-id":         "texts with node and server are made by the client",
	"go-authority-sharing":      "which authorities share a server is resolved above the machine",
	"go-federation-order":       "names reach the machine in canonical form",
	"java-deleted-fail-on-data": "a deletion is honoured whatever fail_on_data_errors says; err-deletion-default shows it",
	"ev-fed-selection":          "the server of a name is chosen above the machine",
	"ttl-manager":               "the times of all resources share one deadline; TestTTLs shows it",
	"ttl-manager-scope":         "a deadline is asked for once a step",
}

// differing are the scenarios whose script ends otherwise than they do, and why.
var differing = map[string]string{
	"ev-mux-reconnect-nonce": versionOfStream,
	"go-retry-after-break":   versionOfStream,
	"java-backoff":           versionOfStream,

	"core-deletion-default":           "a deletion is honoured unless the server or the program is to be ignored; the script has such a server",
	"ev-delta-explicit-over-implicit": "a name beside a legacy wildcard is asked for in the second request, and the star is not spelled",
	"vhds-basic":                      "the base set is a wildcard, as Envoy's integration tests have it",
}

const versionOfStream = "a request says the version that was accepted on its stream, or none, as the protocol's text has it; sotw-reconnect-version shows the other way"

// Every scenario of the first tier is a script, or it is said why it is none.
func TestCases(t *testing.T) {
	scripts := map[string]string{}
	all, err := script.Load(scriptDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		ids := s.Headers["case"]
		if len(ids) > 0 && s.Name != "case-"+ids[0]+".txtar" {
			t.Errorf("%s follows %s; it should be called case-%s.txtar", s.Name, ids[0], ids[0])
		}
		for _, id := range ids {
			scripts[id] = s.Name
		}
	}
	tiers := tiersOfCases(t)
	var tier1 []string
	for id, tier := range tiers {
		if tier == 1 {
			tier1 = append(tier1, id)
		}
	}
	for _, id := range tier1 {
		_, excused := notScripts[id]
		if (scripts[id] != "") == excused {
			t.Errorf("%s: script %q, excused %v: want one of them", id, scripts[id], excused)
		}
	}
	for id := range notScripts {
		if !slices.Contains(tier1, id) {
			t.Errorf("%s is excused, but no scenario of the first tier", id)
		}
	}
	for id := range differing {
		if scripts[id] == "" {
			t.Errorf("%s differs, but no script follows it", id)
		}
	}
	for id := range scripts {
		if _, ok := tiers[id]; !ok {
			t.Errorf("%s follows %s, which is no scenario", scripts[id], id)
		}
	}
}

// tiersOfCases lists the scenarios; a client is judged by those of tier 1 first.
func tiersOfCases(t *testing.T) map[string]int {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) != 6 {
		t.Fatalf("%d files of scenarios, want 6 (%v)", len(files), err)
	}
	tiers := map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Scenarios []struct {
				ID   string `json:"id"`
				Tier int    `json:"tier"`
			} `json:"scenarios"`
		}
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, sc := range doc.Scenarios {
			tiers[sc.ID] = sc.Tier
		}
	}
	if len(tiers) == 0 {
		t.Fatal("no scenarios")
	}
	return tiers
}
