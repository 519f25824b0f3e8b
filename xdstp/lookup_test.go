package xdstp_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/xdstp"
)

// The sections of testdata/xdstp.yaml that other packages have a part in.
type spec struct {
	Templates []struct {
		ID       string `json:"id"`
		Op       string `json:"op"`
		Template string `json:"template"`
		Argument string `json:"argument"`
		Output   string `json:"output"`
	} `json:"templates"`
	Lookups []struct {
		ID    string `json:"id"`
		Input string `json:"input"`
	} `json:"lookups"`
}

func loadSpec(t *testing.T) (s spec) {
	t.Helper()
	text, err := os.ReadFile("testdata/xdstp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// gRPC's templates give names that are read as what was put into them. The text that they
// give is not always canonical: gRPC leaves a ':' as it is, and a template may lack a type.
func TestTemplates(t *testing.T) {
	noType := map[string]string{
		"go-tpl-3":  "0.0.0.0:8080 stands where the type should",
		"go-tpl-4":  "the address stands where the type should",
		"go-res-2b": "grpc-go takes such a name for an old-style one; it is a structured one here, as in C-core and Java",
		"go-res-2c": "the address stands where the type should",
	}
	cases := loadSpec(t).Templates
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			argument := strings.TrimPrefix(c.Argument, "xds:///")
			template, prefix := c.Template, ""
			if c.Op == "percentEncode" {
				prefix = "xdstp:///T/"
				template = prefix + "%s"
			}
			config := bootstrap.Config{ClientDefaultListenerTemplate: template}
			got, err := config.ClientListenerName("", argument)
			if err != nil || got != prefix+c.Output {
				t.Fatalf("the name is %q, %v; want %q", got, err, prefix+c.Output)
			}
			if !xdstp.IsXDSTP(got) {
				return
			}
			n, err := xdstp.Parse(got)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := noType[c.ID]; ok {
				if n.ID != "" {
					t.Errorf("%q has the ID %q, want none", got, n.ID)
				}
				return
			}
			if n.ID != argument {
				t.Errorf("%q has the ID %q, want %q", got, n.ID, argument)
			}
		})
	}
	if len(cases) == 0 {
		t.Error("no cases")
	}
}

// spec: AUTH-3
func TestLookups(t *testing.T) {
	const listener = "type.googleapis.com/envoy.config.listener.v3.Listener"
	config := &bootstrap.Config{
		Servers: []bootstrap.ManagementServer{{URI: "top:1"}},
		Authorities: map[string]bootstrap.Authority{
			"": {Servers: []bootstrap.ManagementServer{{URI: "empty:1"}}},
		},
	}
	table, err := authority.New(config)
	if err != nil {
		t.Fatal(err)
	}
	// Whether a server may answer with a name of another type is for the machine to say;
	// here the type segment of the answer differs from what was asked.
	const answered = "xdstp://authority.xds.com/envoy.config.route.v3.RouteConfiguration/listener1"
	wrongType := func(t *testing.T, _ string) {
		n, err := xdstp.ParseReceived(answered)
		if err != nil || n.Type == xdstp.TypeSegment(listener) {
			t.Errorf("%s is a listener: %v, %v", answered, n, err)
		}
		if _, err := table.Resolve(listener, answered); !errors.Is(err, authority.ErrWrongType) {
			t.Errorf("error %v, want ErrWrongType", err)
		}
	}
	checks := map[string]func(t *testing.T, input string){
		"java-response-wrong-type-lds":     wrongType,
		"java-response-wrong-type-cds-eds": wrongType,
		"java-empty-authority": func(t *testing.T, input string) {
			got, err := table.Resolve(listener, input)
			if err != nil || got.Servers[0].URI != "empty:1" {
				t.Errorf("resolved to %+v, %v", got, err)
			}
		},
		"core-unparsable": func(t *testing.T, input string) {
			_, err := table.Resolve(listener, input)
			if _, ok := errors.AsType[*xdstp.Error](err); !ok {
				t.Errorf("error %v, want an *xdstp.Error", err)
			}
		},
		"go-unknown-authority": func(t *testing.T, input string) {
			_, err := table.Resolve(listener, input)
			e, ok := errors.AsType[*authority.UnknownAuthorityError](err)
			if !ok || e.Authority != "nonexistent-authority" {
				t.Errorf("error %v, want one that names the authority", err)
			}
		},
		"go-target-authority-unknown": func(t *testing.T, _ string) {
			if _, err := config.ClientListenerName("non-existing-authority", "target"); !errors.Is(err, bootstrap.ErrUnknownAuthority) {
				t.Errorf("error %v, want ErrUnknownAuthority", err)
			}
		},
	}
	var left []string
	for _, c := range loadSpec(t).Lookups {
		check, ok := checks[c.ID]
		if !ok {
			left = append(left, c.ID)
			continue
		}
		t.Run(c.ID, func(t *testing.T) { check(t, c.Input) })
	}
	if diff := cmp.Diff([]string(nil), left); diff != "" {
		t.Errorf("cases without a check (-want +got):\n%s", diff)
	}
}
