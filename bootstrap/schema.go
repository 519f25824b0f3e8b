package bootstrap

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
)

// schemaText names the fields of the messages of an Envoy bootstrap that are read, one
// message in a line; a test makes it from the messages themselves. A field that holds such a
// message says which, or "any" where its type URL does; "{}" says that it is a map.
//
//go:embed schema.txt
var schemaText string

// schema gives the fields of messages by their names.
var schema = sync.OnceValue(func() map[string]map[string]held {
	out := map[string]map[string]held{}
	for line := range strings.Lines(schemaText) {
		message, list, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := map[string]held{}
		for entry := range strings.FieldsSeq(list) {
			name, message, _ := strings.Cut(entry, "=")
			name, isMap := strings.CutSuffix(name, "{}")
			fields[name] = held{message: message, isMap: isMap}
		}
		out[message] = fields
	}
	return out
})

// held is what a field of a message holds.
type held struct {
	message string // "" if it is none that is read; "any" if its own type URL names it
	isMap   bool
}

// known makes a fault of each field that a message does not have, here and in the messages
// that it holds, as far as they are read: a word that is misspelt may be the one that asks
// for security.
func (x field) known(message string) {
	fields, ok := schema()[message]
	m, isObject := x.val.(map[string]any)
	if !ok || !isObject {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		at, name := x.at(key), key
		if _, ok := fields[name]; !ok {
			name = snake(key)
		}
		// H-6: only one of two would be read.
		if camel := lowerCamel(name); key != camel && m[key] != nil && m[camel] != nil {
			at.hidden().fault("is given as %s too", camel)
		}
		switch of, ok := fields[name]; {
		case key == "@type":
		case !ok || name != key && lowerCamel(name) != key:
			at.unknown(key, slices.Collect(maps.Keys(fields)))
		case of.message == "":
		case of.isMap:
			at.each(func(v field) { v.held(of.message) })
		default:
			at.held(of.message)
		}
	}
}

// held is known for what a field holds: a message, or a list of such.
func (x field) held(message string) {
	if _, ok := x.val.([]any); ok {
		for _, item := range x.items() {
			item.held(message)
		}
		return
	}
	if message == "any" {
		m, _ := x.val.(map[string]any)
		url, _ := m["@type"].(string)
		message = url[strings.LastIndexByte(url, '/')+1:]
	}
	x.known(message)
}

// each visits the values of a map; what is none is judged elsewhere.
func (x field) each(visit func(field)) {
	if _, ok := x.val.(map[string]any); !ok {
		return
	}
	_, values := x.entries()
	for _, v := range values {
		visit(v)
	}
}

// olderFields are fields of version 2 of Envoy's API, or of an early version 3, and what
// stands for them.
var olderFields = map[string]string{
	"tls_context":                "transport_socket",
	"hosts":                      "load_assignment",
	"extension_protocol_options": "typed_extension_protocol_options",
	"verify_subject_alt_name":    "match_typed_subject_alt_names",
	"config":                     "typed_config",
	"build_version":              "user_agent_build_version",
}

// unknown is the fault of a field that is none of its message's.
func (x field) unknown(name string, fields []string) {
	if now := olderFields[snake(name)]; slices.Contains(fields, now) {
		x.hidden().fault("is no field of this message any more; want %s", now)
		return
	}
	x.hidden().fault("is no field of this message%s", didYouMean(snake(name), fields))
}

// snake is the name of a protobuf field whose JSON name is s.
func snake(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
