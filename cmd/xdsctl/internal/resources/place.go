package resources

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// located is what is wrong with JSON that cannot be read as a message, and the path of its place by the
// names in the JSON. The place is the one that the text of the error tells.
func located(text []byte, err error) (path string, _ error) {
	var line, column int
	if _, after, ok := strings.Cut(err.Error(), "(line "); ok {
		_, _ = fmt.Sscanf(after, "%d:%d", &line, &column)
	}
	s := search{Decoder: json.NewDecoder(bytes.NewReader(text)), offset: offsetOf(text, line, column)}
	s.UseNumber()
	s.value(nil)
	if depth, url := unknownAny(text, s.steps); url != "" {
		return pathOf(s.steps[:depth]), notKnown(url)
	}
	err = Unplaced(err)
	if err.Error() == unknownField {
		s.steps = s.steps[:max(0, len(s.steps)-1)]
	}
	return pathOf(s.steps), err
}

func notKnown(url string) error { return fmt.Errorf("the type %q is not known here", url) }

func isKnown(url string) bool {
	_, err := protoregistry.GlobalTypes.FindMessageByURL(url)
	return err == nil
}

// asBytes gives each Any of a type that is not known its JSON for bytes, so that it can be read and
// compared, and says whether there are some. What is written as bytes stays.
func asBytes(text []byte) (known []byte, some bool) {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil || !enclose(v) {
		return nil, false
	}
	known, err := json.Marshal(v)
	return known, err == nil
}

// enclose is asBytes in a value.
func enclose(v any) (some bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			some = enclose(e) || some
		}
	case map[string]any:
		if url, ok := v["@type"].(string); ok && !isKnown(url) {
			return encloseAny(v, url)
		}
		for _, e := range v {
			some = enclose(e) || some
		}
	}
	return some
}

// encloseAny is enclose for an Any of a type that is not known. The bytes do not depend on the order of
// the fields; without a field there are none.
func encloseAny(v map[string]any, url string) bool {
	delete(v, "@type")
	var content []byte
	switch value, ok := v["value"].(string); {
	case ok && len(v) == 1 && isBase64(value):
		v["@type"] = url
		return false
	case len(v) > 0:
		content, _ = json.Marshal(v) // of what was decoded
	}
	clear(v)
	v["@type"], v["value"] = url, base64.StdEncoding.EncodeToString(content)
	return true
}

// Opened has the JSON of types that are not known, in JSON of resources, in place of its bytes: as it was read
// (see asBytes). Nobody can tell what is secret in it, so its values are shown only if all is.
func Opened(text []byte, showSecrets bool) []byte {
	if !bytes.Contains(text, []byte(`"value":"ey`)) { // an object in base64
		return text
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil || !open(v, showSecrets) {
		return text
	}
	opened, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return opened
}

// open is Opened in a value, and says whether there was any.
func open(v any, showSecrets bool) (some bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			some = open(e, showSecrets) || some
		}
	case map[string]any:
		url, _ := v["@type"].(string)
		if value, ok := v["value"].(string); ok && url != "" && len(v) == 2 && !isKnown(url) {
			return openAny(v, value, showSecrets)
		}
		for _, e := range v {
			some = open(e, showSecrets) || some
		}
	}
	return some
}

func openAny(v map[string]any, value string, showSecrets bool) bool {
	content, err := base64.StdEncoding.DecodeString(value)
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err != nil || d.Decode(&fields) != nil || d.More() || fields["@type"] != nil {
		return false // bytes
	}
	delete(v, "value")
	for name, field := range fields {
		if v[name] = field; !showSecrets {
			v[name] = resourcejson.Redacted
		}
	}
	return true
}

func isBase64(text string) bool {
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil
}

// offsetOf is where a column of a line begins; columns count characters, and both begin at 1.
func offsetOf(text []byte, line, column int) (offset int64) {
	at := 0
	for ; line > 1; line-- {
		at += bytes.IndexByte(text[at:], '\n') + 1
	}
	for ; column > 1; column-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return int64(at)
}

// search looks for what stands at an offset of JSON.
type search struct {
	*json.Decoder
	offset int64
	steps  []any // to what was found: a string of an object, an int of a list
}

// value reads a value to which steps lead, up to what is looked for, and says whether that is in it.
func (s *search) value(steps []any) bool {
	token, err := s.Token()
	if s.is(steps, err) {
		return true
	}
	switch token {
	case json.Delim('{'):
		for s.More() {
			key, err := s.Token()
			next := append(slices.Clip(steps), key)
			if s.is(next, err) || s.value(next) {
				return true
			}
		}
	case json.Delim('['):
		for i := 0; s.More(); i++ {
			if s.value(append(slices.Clip(steps), i)) {
				return true
			}
		}
	default:
		return false
	}
	_, err = s.Token() // the end
	return s.is(steps, err)
}

// is says whether the token that was read last, to which steps lead, is looked for.
func (s *search) is(steps []any, err error) bool {
	if err == nil && s.InputOffset() <= s.offset {
		return false
	}
	s.steps = steps
	return true
}

// unknownAny finds the first Any on the way whose type is not known, and how many steps lead to it.
func unknownAny(text []byte, steps []any) (depth int, url string) {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return 0, ""
	}
	for ; ; depth++ {
		object, _ := v.(map[string]any)
		if url, ok := object["@type"].(string); ok && !isKnown(url) {
			return depth, url
		}
		if depth == len(steps) {
			return 0, ""
		}
		switch step := steps[depth].(type) {
		case string:
			v = object[step]
		case int:
			if list, _ := v.([]any); step < len(list) { // it is another value if a name is given twice
				v = list[step]
			}
		}
	}
}

// plain is a name that a path has without quotes.
var plain = regexp.MustCompile(`^\w+$`)

func pathOf(steps []any) (path string) {
	for _, step := range steps {
		switch name, isName := step.(string); {
		case isName && plain.MatchString(name):
			path = Join(path, name)
		case isName:
			path += fmt.Sprintf("[%q]", name)
		default:
			path += fmt.Sprintf("[%d]", step)
		}
	}
	return path
}
