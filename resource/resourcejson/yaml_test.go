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
		"a: 1":                            `{"a":1} <nil>`,
		"---\na: 1\n---\n# x\n":           `{"a":1} <nil>`,
		"":                                `null <nil>`,
		"# x":                             `null <nil>`,
		"b: 1\n1: {true: .5}":             `{"1":{"true":0.5},"b":1} <nil>`,
		"[.inf, -.inf, .nan, 010]":        `["Infinity","-Infinity","NaN",8] <nil>`,
		"a: &m {b: 1}\nc: {<<: *m, b: 2}": `{"a":{"b":1},"c":{"b":2}} <nil>`,
		"a: 1\n---\nMARK3R: 2\n":          ` yaml: more than one document`,
		"a: 1\n---\n---\nMARK3R: 2\n":     ` yaml: more than one document`,
		"a: 1 # <<\na: MARK3R\n":          ` yaml: line 2: a key is there twice`,
		"a: *MARK3R":                      ` yaml: an alias of an anchor that there is not`,
		"[a]: MARK3R":                     ` yaml: line 1: a key that is no text`,
		"a: &a [*a]":                      ` yaml: line 1: an anchor contains itself`,
		"1.10: 1\non: 2\nnull: 3\n010: 4": `{"010":4,"1.10":1,"null":3,"on":2} <nil>`,
		"1: a\n\"1\": MARK3R":             ` yaml: line 2: a key is there twice`,
		"on: a\n\"true\": b":              `{"on":"a","true":"b"} <nil>`,
		"!ignore a: {b: b, b: b}\nc: 1":   `{"c":1} <nil>`,
		"[1_0, 0b1, 0o7, 0x1F, -010, +1, 1., 08]": `["1_0","0b1","0o7",31,-8,1,1,8] <nil>`,
		"[2147483647, 2147483648, -3000000000]":   `[2147483647,"2147483648","-3000000000"] <nil>`,
		"[18446744073709551616, 1e400, 1e3]":      `[1.8446744073709552e+19,"1e400",1000] <nil>`,
		"[y, n, On, tRue, Null, ~, '~', !!str y]": `[true,false,true,"tRue",null,null,"~","y"] <nil>`,
		"- !!int '5'\n- !x 6\n- |-\n  7\n":        `[5,6,"7"] <nil>`,
		"[&a MARK3R MARK3R, *a, *a, *a, *a, *a]":  ` yaml: it stands for more than 60 bytes`,
	} {
		data, err := resourcejson.FromYAML([]byte(text), 60)
		if got := fmt.Sprintf("%s %v", data, err); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
