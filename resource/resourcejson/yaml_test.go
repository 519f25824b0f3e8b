package resourcejson_test

import (
	"fmt"
	"testing"

	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// The JSON of YAML is what protobuf reads, in one spelling; errors quote nothing.
//
// spec: H-3, H-10
func TestFromYAML(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1":                                   `{"a":1} <nil>`,
		"---\na: 1\n---\n# x\n":                  `{"a":1} <nil>`,
		"":                                       `null <nil>`,
		"# x":                                    `null <nil>`,
		"b: 1\n1: {true: .5}":                    `{"1":{"true":0.5},"b":1} <nil>`,
		"[.inf, -.inf, .nan, 010]":               `["Infinity","-Infinity","NaN",8] <nil>`,
		"a: &m {b: 1}\nc: {<<: *m, b: 2}":        `{"a":{"b":1},"c":{"b":2}} <nil>`,
		"a: 1\n---\nMARK3R: 2\n":                 ` yaml: more than one document`,
		"a: 1\n---\n---\nMARK3R: 2\n":            ` yaml: more than one document`,
		"a: 1 # <<\na: MARK3R\n":                 ` yaml: line 2: a key is there twice`,
		"a: *MARK3R":                             ` yaml: an alias of an anchor that there is not`,
		"1.5: MARK3R":                            ` yaml: a key of type float64 has no form in JSON`,
		"[&a MARK3R MARK3R, *a, *a, *a, *a, *a]": ` yaml: it stands for more than 60 bytes`,
	} {
		data, err := resourcejson.FromYAML([]byte(text), 60)
		if got := fmt.Sprintf("%s %v", data, err); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
