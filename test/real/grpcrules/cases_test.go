package grpcrules

import (
	"encoding/json"
	"os"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/validate/grpcrules"
)

// The resource of each rule is one that gRPC's own client refuses, unless the rule says that it ignores
// what is wrong. Rules of features that are off in gRPC are left out.
func TestCases(t *testing.T) {
	text, err := os.ReadFile("../../../validate/grpcrules/testdata/cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Cases []struct {
			Rule     grpcrules.Rule
			Options  string
			Resource json.RawMessage
			Broken   bool
		}
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	ignored := map[grpcrules.Rule]bool{"": true}
	for _, a := range grpcrules.Rules() {
		ignored[a.Rule] = a.Ignored
	}
	j := newJudge(t, listener(), routes(), cluster(), assignment())
	judged := 0
	for i, c := range all.Cases {
		a := &anypb.Any{}
		if err := protojson.Unmarshal(c.Resource, a); err != nil {
			t.Fatal(err)
		}
		m, err := a.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		if c.Options != "" || j.good[urlOf(m)] == nil {
			continue
		}
		if c.Broken {
			m.(*clusterv3.Cluster).GetClusterType().TypedConfig.Value = []byte{0xff}
		}
		judged++
		if verdict := j.judge(m); (verdict == "") != ignored[c.Rule] {
			t.Errorf("case %d, %s: gRPC says %q", i+1, c.Rule, verdict)
		}
	}
	if judged < len(all.Cases)-5 {
		t.Errorf("only %d of %d cases were judged", judged, len(all.Cases))
	}
}
