package grpcrules

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/validate/grpcrules"
)

// option is the environment variable with the options of the cases that TestCases judges.
const option = "GRPCRULES_OPTIONS"

// Features of gRPC are turned on by environment variables, which it reads at its start.
func TestFeatures(t *testing.T) {
	for options, variable := range map[string]string{
		"sni": "GRPC_EXPERIMENTAL_XDS_SNI", "connect": "GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT",
		"authn": "GRPC_EXPERIMENTAL_XDS_GCP_AUTHENTICATION_FILTER", "roots": "GRPC_EXPERIMENTAL_XDS_SYSTEM_ROOT_CERTS",
	} {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCases$")
		c.Env = append(os.Environ(), option+"="+options, variable+"=true")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", options, err, out)
		}
	}
}

// The resource of each rule is one that gRPC's own client refuses, unless the rule says that it ignores
// what is wrong. Cases of features that are off in gRPC are those of TestFeatures.
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
	text = bytes.ReplaceAll(text, []byte("LONG"), bytes.Repeat([]byte("x"), 256))
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
		if c.Options != os.Getenv(option) || j.good[urlOf(m)] == nil {
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
	if judged == 0 || os.Getenv(option) == "" && judged < len(all.Cases)-8 {
		t.Errorf("only %d of %d cases were judged", judged, len(all.Cases))
	}
}
