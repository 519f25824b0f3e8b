package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// notScripts are the scenarios of reference clients' own tests that no script follows, and
// why. Everything else of the first tier is a script with a case header.
var notScripts = map[string]string{
	"ev-sotw-add-remove":        "changes that cancel out before a message leaves need none here; stream-coalesce shows it",
	"ev-mux-rate-empty":         "a configured request limit belongs to the writer of the stream, not to the protocol",
	"ev-mux-replace-source":     "another server is another stream that is told nothing of the first; ack-other-server shows it",
	"ev-alias-update":           "alias-watch shows it",
	"odcds-first-starts":        "nothing is held back until a first answer; stream-never-waits-delta shows it",
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

// Every scenario of the first tier is a script, or it is said why it is none.
func TestCases(t *testing.T) {
	scripts := map[string]string{}
	for _, file := range scriptFiles(t) {
		s, _ := readScript(t, file)
		for _, id := range s.Headers["case"] {
			if want := "case-" + id + ".txtar"; s.Name != want {
				t.Errorf("%s follows %s; it should be called %s", s.Name, id, want)
			}
			scripts[id] = s.Name
		}
	}
	tier1 := firstTier(t)
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
	for id := range scripts {
		if !slices.Contains(tier1, id) {
			t.Errorf("%s is no scenario of the first tier", scripts[id])
		}
	}
}

// firstTier lists the scenarios that a client is judged by first.
func firstTier(t *testing.T) []string {
	files, err := filepath.Glob("testdata/cases/*.yaml")
	if err != nil || len(files) != 6 {
		t.Fatalf("%d files of scenarios, want 6 (%v)", len(files), err)
	}
	var ids []string
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
			if sc.Tier == 1 {
				ids = append(ids, sc.ID)
			}
		}
	}
	if len(ids) == 0 {
		t.Fatal("no scenarios of the first tier")
	}
	return ids
}
