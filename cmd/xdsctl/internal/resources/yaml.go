package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
)

// FromYAML makes JSON of a single document of YAML whose aliases stand for no more than [MaxFile]. Equal keys are
// an error, but where a merge key says that there may be some. An error quotes no value.
func FromYAML(doc []byte) ([]byte, error) {
	d := goyaml.NewDecoder(bytes.NewReader(doc))
	d.SetStrict(!bytes.Contains(doc, []byte("<<")))
	var v, more any
	err := d.Decode(&v)
	for err == nil && more == nil { // empty documents say nothing
		err = d.Decode(&more)
	}
	switch {
	case err == nil:
		return nil, errors.New("yaml: more than one document")
	case !errors.Is(err, io.EOF):
		return nil, yamlFault(err)
	}
	// H-10: the library bounds how many values aliases stand for, and not how large these are.
	if texts(v, MaxFile) < 0 {
		return nil, fmt.Errorf("aliases stand for more than %d bytes", MaxFile)
	}
	return json.Marshal(ofJSON(v))
}

// ofJSON makes a value of YAML one of JSON, whose keys are strings.
func ofJSON(v any) any {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			v[i] = ofJSON(e)
		}
	case map[any]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			m[fmt.Sprint(key)] = ofJSON(value)
		}
		return m
	}
	return v
}

// yamlFaults are the faults in whose texts the library quotes values, which may be secrets, and texts for them.
var yamlFaults = []struct{ has, text string }{
	{"unknown anchor", "an alias of an anchor that there is not"},
	{"value contains itself", "an anchor contains itself"},
	{"invalid map key", "a key that is no text"},
	{"cannot decode", "a value that its tag does not fit"},
	{"already set in map", "a key is given twice"},
}

var yamlLine = regexp.MustCompile(`line [0-9]+: `)

// H-3
func yamlFault(err error) error {
	for _, f := range yamlFaults {
		if strings.Contains(err.Error(), f.has) {
			return errors.New("yaml: " + yamlLine.FindString(err.Error()) + f.text)
		}
	}
	return err
}

// texts is what is left of bytes after the strings in a value; less than 0 if they are more.
func texts(v any, left int) int {
	switch v := v.(type) {
	case string:
		left -= len(v)
	case []any:
		for i := 0; i < len(v) && left >= 0; i++ {
			left = texts(v[i], left)
		}
	case map[any]any:
		for key, value := range v {
			if left = texts(value, texts(key, left)); left < 0 {
				break
			}
		}
	}
	return left
}
