// Package resourcejson writes resources for people and programs to look at, without their secrets:
//
//	text := resourcejson.Options{}.Message(cluster)
//
// It is the protobuf JSON mapping with two differences: the text of a message is always the same,
// and no content makes it fail. A google.protobuf.Any whose message is not linked in, or whose
// bytes are not that message, is written as {"@type": URL, "value": BASE64}. [Redact] takes the
// secrets out of the message itself.
//
// Secret is what stands inline in an envoy.extensions.transport_sockets.tls.v3.Secret, what the
// protos mark as sensitive (udpa.annotations.sensitive), such as private keys and passwords, JSON Web
// Keys that are not all public, values of headers such as authorization, and passwords in URLs. Nobody can
// tell what is secret in a message that is not linked in; [Options.HideUnknown] leaves those out.
package resourcejson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/sensitive"
)

// Options say how resources are written.
type Options struct {
	ShowSecrets bool // do not redact
	// Readable has what stands for a secret be of the type of its field, so that the text can be
	// read as the message.
	Readable bool
	// HideUnknown leaves out the payload of an Any whose message is not linked in, or whose bytes are
	// not that message: {"@type": URL}.
	HideUnknown bool
	// ProtoNames writes the names of fields as in the proto files, as Envoy's administration does;
	// else they are in lowerCamelCase.
	ProtoNames bool
}

// Message writes a message: fields in the order of their definition, those without
// presence only if they are set, maps sorted by key.
func (o Options) Message(m proto.Message) []byte {
	w := writer{Options: o}
	w.message(m.ProtoReflect())
	return w.Bytes()
}

// Any writes a message as in an Any of the type URL.
func (o Options) Any(typeURL string, m proto.Message) []byte {
	w := writer{Options: o}
	w.typed(typeURL, m.ProtoReflect())
	return w.Bytes()
}

// Unknown writes a payload whose type is not known.
func Unknown(typeURL string, payload []byte) []byte {
	var w writer
	w.unknown(typeURL, payload)
	return w.Bytes()
}

// maxDepth is how deep an Any may stand in others before it is left as it is: each level
// copies all those below it.
const maxDepth = 64

// writer is the text so far.
type writer struct {
	bytes.Buffer
	Options
	depth     int // of messages in an Any
	secret    int // of Secrets that are being written
	sensitive int // of fields that are being written and are not to be shown
	plain     int // of messages that are being written and whose own mapping has no text for them
}

// object writes an object whose members f writes, each begun with a call of name.
func (w *writer) object(f func(name func(string))) {
	w.WriteByte('{')
	first := true
	f(func(name string) {
		if !first {
			w.WriteByte(',')
		}
		first = false
		w.text(name)
		w.WriteByte(':')
	})
	w.WriteByte('}')
}

// text writes a string without the escapes that only HTML needs.
func (w *writer) text(s string) {
	if isPlain(s) { // most are
		w.WriteByte('"')
		w.WriteString(s)
		w.WriteByte('"')
		return
	}
	enc := json.NewEncoder(&w.Buffer)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can be encoded, and a buffer written to
	w.Truncate(w.Len() - len("\n"))
}

// isPlain says that a string needs no escapes.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (w *writer) base64(b []byte) { w.text(base64.StdEncoding.EncodeToString(b)) }

func (w *writer) unknown(typeURL string, payload []byte) {
	w.object(func(name func(string)) {
		name("@type")
		w.text(typeURL)
		if w.HideUnknown && !w.ShowSecrets {
			return
		}
		name("value")
		if inSecret := w.secret > 0 || strings.HasSuffix(typeURL, "/"+secretName); w.redacts() || inSecret && !w.ShowSecrets {
			w.text(Redacted)
			return
		}
		w.base64(payload)
	})
}

// message writes a message with the mapping of its type.
func (w *writer) message(m protoreflect.Message) {
	if m.Descriptor().FullName() == secretName {
		w.secret++
		defer func() { w.secret-- }()
	}
	switch {
	case w.redacts() && hasOwnMapping(m.Descriptor()) && m.Descriptor().FullName() != anyName:
		w.redactedMapping(m)
	case m.Descriptor().FullName() == anyName:
		w.any(m)
	case hasOwnMapping(m.Descriptor()) && w.plain == 0 && w.ownMapping(m):
	case hasOwnMapping(m.Descriptor()):
		// What lies in it is written the same way: each level would be tried in vain.
		w.plain++
		defer func() { w.plain-- }()
		fallthrough
	default:
		w.object(func(name func(string)) { w.fields(m, name) })
	}
}

const (
	anyName          = "google.protobuf.Any"
	wellKnownPackage = "google.protobuf"
)

// hasOwnMapping says whether the JSON of a type is not an object of its fields.
func hasOwnMapping(d protoreflect.MessageDescriptor) bool {
	if d.FullName().Parent() != wellKnownPackage {
		return false
	}
	switch d.Name() {
	case "Any", "Timestamp", "Duration", "FieldMask", "Struct", "Value", "ListValue",
		"BoolValue", "BytesValue", "StringValue", "DoubleValue", "FloatValue",
		"Int32Value", "Int64Value", "UInt32Value", "UInt64Value":
		return true
	}
	return false
}

// ownMapping writes a value of a type with a mapping of its own, none of which can hold an
// Any. It writes nothing and returns false where the mapping has no text for the value,
// such as a duration of a million years.
func (w *writer) ownMapping(m protoreflect.Message) bool {
	text, err := protojson.MarshalOptions{AllowPartial: true}.Marshal(m.Interface())
	if err != nil {
		return false
	}
	if !w.ShowSecrets {
		text = []byte(sensitive.HidePasswords(string(text), Redacted))
	}
	_ = json.Compact(&w.Buffer, text) // it is JSON
	return true
}

// redactedMapping stands for a message that is not shown and whose JSON is no object of its fields.
func (w *writer) redactedMapping(m protoreflect.Message) {
	if !w.Readable || !w.ownMapping(m.Type().Zero()) {
		w.text(Redacted)
	}
}

// any writes the message inside, with "@type" before its fields.
func (w *writer) any(m protoreflect.Message) {
	a, ok := m.Interface().(*anypb.Any)
	if !ok || a.GetTypeUrl() == "" {
		w.object(func(name func(string)) { w.fields(m, name) })
		return
	}
	if w.depth == maxDepth {
		w.unknown(a.GetTypeUrl(), a.GetValue())
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	inner, err := UnmarshalAny(a)
	if err != nil {
		w.unknown(a.GetTypeUrl(), a.GetValue())
		return
	}
	w.typed(a.GetTypeUrl(), inner.ProtoReflect())
}

// typed writes a message with "@type" before its fields.
func (w *writer) typed(typeURL string, m protoreflect.Message) {
	if m.Descriptor().FullName() == secretName {
		w.secret++
		defer func() { w.secret-- }()
	}
	w.object(func(name func(string)) {
		name("@type")
		w.text(typeURL)
		if hasOwnMapping(m.Descriptor()) {
			name("value")
			w.message(m)
			return
		}
		w.fields(m, name)
	})
}
