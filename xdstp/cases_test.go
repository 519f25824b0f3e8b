package xdstp

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// specCase is one entry of testdata/xdstp.yaml. Valid is a bool or "opaque".
type specCase struct {
	ID        string      `json:"id"`
	Op        string      `json:"op"`
	Input     string      `json:"input"`
	Input2    string      `json:"input2"`
	Valid     any         `json:"valid"`
	Parsed    *specParsed `json:"parsed"`
	Canonical string      `json:"canonical"`
	Error     string      `json:"error"`
	ForType   string      `json:"for_type"`
	Output    any         `json:"output"`
	// Of the section cross: what each implementation makes of the input.
	Envoy    string `json:"envoy"`
	GRPCGo   string `json:"grpc_go"`
	GRPCJava string `json:"grpc_java"`
}

type specParsed struct {
	Scheme     string            `json:"scheme"`
	Authority  string            `json:"authority"`
	Type       string            `json:"type"`
	ID         string            `json:"id"`
	Params     map[string]string `json:"context_params"`
	Directives []specDirective   `json:"directives"`
}

type specDirective struct {
	Alt   *specParsed `json:"alt"`
	Entry string      `json:"entry"`
}

func (p *specParsed) name() Name {
	n := Name{Authority: p.Authority, Type: p.Type, ID: p.ID}
	for k, v := range p.Params {
		n.Params = append(n.Params, Param{k, v})
	}
	n.Params = inOrder(n.Params)
	return n
}

func (p *specParsed) locator() Locator {
	schemes := map[string]Scheme{"XDSTP": SchemeXDSTP, "HTTP": SchemeHTTP, "FILE": SchemeFile}
	l := Locator{Scheme: schemes[p.Scheme], Name: p.name()}
	for _, d := range p.Directives {
		out := Directive{Entry: d.Entry}
		if d.Alt != nil {
			alt := d.Alt.locator()
			out.Alt = &alt
		}
		l.Directives = append(l.Directives, out)
	}
	return l
}

// elsewhere are the sections that have another form than those of [loadSections].
var elsewhere = map[string]string{
	"meta":           "about the file",
	"rules":          "prose; TestEscapeSets and the other tables check it",
	"lookups":        "TestLookups",
	"templates":      "TestTemplates",
	"context_params": "TestContextCases and, of the node, package nodeparams",
}

func loadSections(t testing.TB) map[string][]specCase {
	t.Helper()
	sections := make(map[string][]specCase)
	for name, body := range readSections(t) {
		if _, skip := elsewhere[name]; skip {
			continue
		}
		var cases []specCase
		if err := json.Unmarshal(body, &cases); err != nil {
			t.Fatalf("section %s: %v", name, err)
		}
		sections[name] = cases
	}
	return sections
}

func readSections(t testing.TB) (raw map[string]json.RawMessage) {
	t.Helper()
	text, err := os.ReadFile("testdata/xdstp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// No section of the file is passed over in silence.
func TestSpecSections(t *testing.T) {
	got := slices.Sorted(maps.Keys(loadSections(t)))
	want := []string{"cases", "cross", "grpc_go_names", "grpc_java_names", "percent_decode"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sections that are tested here (-want +got):\n%s", diff)
	}
}

// spec: XDSTP-1, XDSTP-2, XDSTP-4, XDSTP-6, ENTRY-1
func TestEnvoyCases(t *testing.T) {
	for _, c := range loadSections(t)["cases"] {
		t.Run(c.ID, func(t *testing.T) {
			switch c.Op {
			case "decode-name then encode(sort params)":
				n, err := Parse(c.Input)
				checkParsed(t, c, n, err, (*specParsed).name)
			case "decode-locator then encode(sort params)":
				l, err := ParseLocator(c.Input)
				checkParsed(t, c, l, err, (*specParsed).locator)
			case "collection subscription": // spec: XDSTP-3
				n, err := Parse(c.Input)
				if err != nil {
					t.Fatal(err)
				}
				if want := TypeSegment("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"); n.Type == want {
					t.Errorf("type %q equals %q", n.Type, want)
				}
			default:
				t.Fatalf("unknown op %q", c.Op)
			}
		})
	}
}

func checkParsed[T interface{ String() string }](t *testing.T, c specCase, got T, err error, want func(*specParsed) T) {
	t.Helper()
	if valid, ok := c.Valid.(bool); !ok || valid != (err == nil) {
		t.Fatalf("error %v, want valid = %v", err, c.Valid)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(want(c.Parsed), got); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
	if got := got.String(); got != c.Canonical {
		t.Errorf("canonical %q, want %q", got, c.Canonical)
	}
}

func TestPercentDecode(t *testing.T) {
	for _, c := range loadSections(t)["percent_decode"] {
		if got := unescape(c.Input); got != c.Output {
			t.Errorf("%s: unescape(%q) = %q, want %q", c.ID, c.Input, got, c.Output)
		}
	}
}

func TestGRPCGoNames(t *testing.T) {
	differs := map[string]string{
		"go-name-3": "an ID may be empty, as in Envoy and C-core; taking the name for an " +
			"old-style one would send it to servers that do not own it",
	}
	for _, c := range loadSections(t)["grpc_go_names"] {
		t.Run(c.ID, func(t *testing.T) {
			opaque := c.Valid == "opaque"
			if got := !IsXDSTP(c.Input); got != opaque && differs[c.ID] == "" {
				t.Errorf("old-style = %v, want %v", got, opaque)
			}
			for _, input := range []string{c.Input, c.Input2} {
				if input == "" {
					continue
				}
				if got, err := Canonical(input); err != nil || got != c.Canonical {
					t.Errorf("Canonical(%q) = %q, %v; want %q", input, got, err, c.Canonical)
				}
			}
		})
	}
}

func TestGRPCJavaNames(t *testing.T) {
	for _, c := range loadSections(t)["grpc_java_names"] {
		t.Run(c.ID, func(t *testing.T) {
			var got any
			switch c.Op {
			case "isResourceNameValid": // spec: XDSTP-3
				n, err := Parse(c.Input)
				got = !IsXDSTP(c.Input) || err == nil && n.Type == c.ForType
			case "canonifyResourceName":
				text, err := Canonical(c.Input)
				if err != nil {
					t.Fatal(err)
				}
				got = text
			case "percentEncodePath":
				got = string(escape(nil, c.Input, idSet))
			default:
				t.Fatalf("unknown op %q", c.Op)
			}
			if got != c.Output {
				t.Errorf("%s(%q) = %v, want %v", c.Op, c.Input, got, c.Output)
			}
		})
	}
}
