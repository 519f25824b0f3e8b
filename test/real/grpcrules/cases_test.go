package grpcrules

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/xdswatch/xdswatch/internal/rulecases"
	"github.com/xdswatch/xdswatch/validate/grpcrules"
)

// option is the environment variable with the options that the tests judge with.
const option = "GRPCRULES_OPTIONS"

// Features of gRPC are turned on by environment variables, which it reads at its start. With each of them gRPC
// and the rules agree too.
func TestFeatures(t *testing.T) {
	for options, variable := range map[string]string{
		"sni": "GRPC_EXPERIMENTAL_XDS_SNI", "connect": "GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT",
		"authn": "GRPC_EXPERIMENTAL_XDS_GCP_AUTHENTICATION_FILTER", "roots": "GRPC_EXPERIMENTAL_XDS_SYSTEM_ROOT_CERTS",
	} {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^(TestCases|TestAgree)$", fmt.Sprintf("-seed=%d", *seed), fmt.Sprintf("-count=%d", *count))
		c.Env = append(os.Environ(), option+"="+options, variable+"=true")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", options, err, out)
		}
	}
}

// The resource of each rule is one that gRPC's own client refuses, unless the rule says that it ignores
// what is wrong, and whose mended twin it takes. Cases of features that are off in gRPC are those of TestFeatures.
func TestCases(t *testing.T) {
	all := rulecases.Read(t, "../../../validate/grpcrules/testdata/cases.yaml")
	ignored := map[grpcrules.Rule]bool{"": true}
	for _, a := range grpcrules.Rules() {
		ignored[a.Rule] = a.Ignored
	}
	j := newJudge(t, listener(), routes(), cluster(), assignment())
	judged, passed := 0, 0 // of those that gRPC asks for, and of others
	for i, c := range all {
		if c.Options != os.Getenv(option) {
			continue
		}
		m := c.Message(t)
		if j.good[urlOf(m)] == nil {
			passed++
			continue
		}
		judged++
		if verdict := j.judge(m); (verdict == "") != ignored[grpcrules.Rule(c.Rule)] {
			t.Errorf("case %d, %s: gRPC says %q", i+1, c.Rule, verdict)
		}
		if twin := c.Twin(t); twin != nil {
			if verdict := j.judge(twin); verdict != "" {
				t.Errorf("case %d, %s, mended: gRPC says %q", i+1, c.Rule, verdict)
			}
		}
	}
	if judged == 0 || passed > 1 {
		t.Errorf("%d cases were judged, %d were not", judged, passed)
	}
}
