// Package rulecases reads the resources that break the rules of validate/grpcrules, and their mended twins, for
// the tests that judge them by the rules and by gRPC's own client.
package rulecases

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"
)

// Case is a resource that breaks one rule, or none.
type Case struct {
	Rule     string // "" for none
	Path     string // of the finding
	Options  string // the feature of gRPC that is turned on; "" for none
	Resource json.RawMessage
	Broken   bool // the content of the Any of a cluster's type is none
	// Mended is what stands at Path in a twin of the resource that breaks no rule; nil if there is no twin.
	Mended json.RawMessage
}

// Read reads the cases of a file.
func Read(t testing.TB, file string) []Case {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Shared any // anchors
		Cases  []Case
	}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), "LONG", strings.Repeat("a", 256))), &all); err != nil {
		t.Fatal(err)
	}
	return all.Cases
}

// Message is the resource.
func (c Case) Message(t testing.TB) proto.Message {
	t.Helper()
	m := message(t, c.Resource)
	if c.Broken {
		m.(*clusterv3.Cluster).GetClusterType().TypedConfig.Value = []byte{0xff}
	}
	return m
}

// Twin is the mended twin of the resource; nil if there is none.
func (c Case) Twin(t testing.TB) proto.Message {
	t.Helper()
	if c.Mended == nil {
		return nil
	}
	var resource, mended any
	if json.Unmarshal(c.Resource, &resource) != nil || json.Unmarshal(c.Mended, &mended) != nil {
		t.Fatalf("%s: no JSON", c.Rule)
	}
	text, err := json.Marshal(put(resource, step.FindAllString(c.Path, -1), mended))
	if err != nil {
		t.Fatal(err)
	}
	return message(t, text)
}

func message(t testing.TB, text []byte) proto.Message {
	t.Helper()
	a := &anypb.Any{}
	if err := protojson.Unmarshal(text, a); err != nil {
		t.Fatalf("%v of %s", err, text)
	}
	m, err := a.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// step is one of a path: the name of a field, the key of a map in quotes, or the index of a list.
var step = regexp.MustCompile(`\w+|"[^"]+"`)

// put is a value of JSON with another one where the steps lead.
func put(in any, steps []string, value any) any {
	if len(steps) == 0 {
		return value
	}
	if list, isList := in.([]any); isList {
		i, _ := strconv.Atoi(steps[0])
		list[i] = put(list[i], steps[1:], value)
		return list
	}
	object, _ := in.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	name := strings.Trim(steps[0], `"`)
	object[name] = put(object[name], steps[1:], value)
	return object
}
