package resources

import (
	"bytes"
	"fmt"

	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// FromYAML makes JSON of YAML whose aliases stand for no more than [MaxFile].
func FromYAML(doc []byte) ([]byte, error) {
	// H-10: the library bounds how many values aliases stand for, and not how large these are.
	if bytes.ContainsRune(doc, '&') && bytes.ContainsRune(doc, '*') {
		var v any
		if err := goyaml.Unmarshal(doc, &v); err != nil {
			return nil, err
		}
		if texts(v, MaxFile) < 0 {
			return nil, fmt.Errorf("aliases stand for more than %d bytes", MaxFile)
		}
	}
	return yaml.YAMLToJSON(doc)
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
