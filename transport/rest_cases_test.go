package transport_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Every scenario of Envoy's own tests is a test here, or it is said why it is none.
func TestRESTCases(t *testing.T) {
	tests := map[string]string{
		"ev-rest-request":        "TestRESTPoll",
		"ev-rest-poll":           "TestRESTRefresh",
		"ev-rest-no-cluster":     "TestRESTBuild: a server without endpoints is a fault of the configuration, and there is no request",
		"ev-rest-bad-json":       "TestRESTBadJSONRecovery, TestRESTThroughClient",
		"ev-rest-304":            "TestREST304",
		"ev-rest-time-reject":    "when a response was accepted last is the machine's to know, on any transport; TestGauges of the client",
		"ev-rest-time-ok":        "as ev-rest-time-reject",
		"ev-rest-names":          "TestRESTChangeOfInterest, but at once in place of at the next poll",
		"ev-rest-timeout-config": "TestRESTRequestTimeout",
	}
	got := map[string]bool{}
	for _, id := range scenarioIDs(t, "testdata/rest.yaml") {
		got[id] = true
		if tests[id] == "" {
			t.Errorf("%s: no test, and no reason", id)
		}
	}
	want := map[string]bool{}
	for id := range tests {
		want[id] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// scenarioIDs lists the scenarios of a file.
func scenarioIDs(t *testing.T, file string) (ids []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Scenarios []struct {
			ID string `json:"id"`
		} `json:"scenarios"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for _, sc := range doc.Scenarios {
		ids = append(ids, sc.ID)
	}
	return ids
}
