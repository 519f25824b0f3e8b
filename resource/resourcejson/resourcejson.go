// Package resourcejson writes resources for people and programs to look at, without their secrets:
//
//	text := resourcejson.Options{}.Message(cluster)
//
// It is the protobuf JSON mapping with two differences: the text of a message is always the same,
// and no content that was decoded makes it fail. Characters that do not show, or that a terminal obeys, are
// written as escapes (\u202e). A google.protobuf.Any whose message is not linked in, or whose
// bytes are not that message, is written as {"@type": URL, "value": BASE64}. [Redact] takes the
// secrets out of the message itself.
//
// Secret is what stands inline in an envoy.extensions.transport_sockets.tls.v3.Secret, what the
// protos mark as sensitive (udpa.annotations.sensitive), such as private keys and passwords, JSON Web
// Keys that are not all public, values of headers such as authorization, and passwords in URLs. Nobody can
// tell what is secret in a message that is not linked in; [Options.HideUnknown] leaves those out.
package resourcejson

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Options say how resources are written.
type Options struct {
	// ShowSecrets does not redact. Else [Redacted] stands for a secret, in bytes its base64, and for one that is
	// neither a string nor bytes the zero value: the text can be read as the message.
	ShowSecrets bool
	// HideUnknown leaves out the payload of an Any whose message is not linked in, or whose bytes are
	// not that message: {"@type": URL}.
	HideUnknown bool
	// ProtoNames writes the names of fields as in the proto files, as Envoy's administration does;
	// else they are in lowerCamelCase.
	ProtoNames bool
}

// Message writes a message: fields in the order of their definition, those without
// presence only if they are set, maps sorted by key.
func (o Options) Message(m proto.Message) []byte { return NewWriter(o).Message(m) }

// Any writes a message as in an Any of the type URL.
func (o Options) Any(typeURL string, m proto.Message) []byte {
	w := NewWriter(o)
	w.root(m, func(l *layout, at span) bool { return w.typed([]byte(typeURL), l, at) })
	return w.buf
}

// Unknown writes a payload whose type is not known.
func Unknown(typeURL string, payload []byte) []byte {
	var w Writer
	w.unknown(typeURL, payload)
	return w.buf
}

// Writer writes many messages, and remembers what it has learned of their types. It reads the wire form, and
// builds no messages. It is not safe for concurrent use.
type Writer struct {
	options
	buf     []byte       // the text so far
	encoded []byte       // the message
	found   []occurrence // of the messages that are being written, the outermost first
	layouts map[protoreflect.MessageDescriptor]*layout
	byURL   map[string]*layout
	level
	hidden bool // some of the bytes have no part in the text
	noText bool // a mapping of its own has no text for a value
}

type options = Options

// level is what is known on the way into a message.
type level struct {
	depth     int // of messages in an Any
	nested    int // of messages
	secret    int // of Secrets that are being written
	sensitive int // of fields that are being written and are not to be shown
	plain     int // of messages that are being written and whose own mapping has no text for them
}

// NewWriter makes a writer.
func NewWriter(o Options) *Writer { return &Writer{options: o} }

const (
	// maxDepth is how deep an Any may stand in others before it is left as it is.
	maxDepth = 64
	// maxNested is how deep messages may stand in each other, as where they are decoded, but also with those in an Any.
	maxNested = protowire.DefaultRecursionLimit
)

// Message writes a message as [Options.Message] does. The text is good until the next call.
func (w *Writer) Message(m proto.Message) []byte {
	w.root(m, w.message)
	return w.buf
}

// Any writes what an Any of a type URL and a payload is, as [Options.Message] does. The text is good until the
// next call.
func (w *Writer) Any(typeURL string, payload []byte) []byte {
	w.begin()
	w.content([]byte(typeURL), payload)
	return w.buf
}

// Hides says whether Any leaves out some of the payload, or changes it: secrets; with HideUnknown what nobody can
// tell from one; and what the message itself leaves out, such as a value that a later one of the same
// field replaces.
func (w *Writer) Hides(typeURL string, payload []byte) bool {
	w.Any(typeURL, payload)
	return w.hidden
}

func (w *Writer) begin() {
	w.buf, w.found, w.level, w.hidden = w.buf[:0], w.found[:0], level{}, false
}

// root writes a message that is not encoded yet.
func (w *Writer) root(m proto.Message, write func(*layout, span) bool) {
	w.begin()
	var err error
	w.encoded, err = proto.MarshalOptions{AllowPartial: true}.MarshalAppend(w.encoded[:0], m)
	if err != nil || !write(w.layout(m.ProtoReflect().Descriptor()), w.push(w.encoded)) {
		w.begin()
		w.raw("{}") // no server has sent it: it has a text that is no UTF-8, or is nested too deep
	}
}

// unknown writes a payload that cannot be looked into.
func (w *Writer) unknown(typeURL string, payload []byte) {
	w.byte('{')
	if typeURL != "" {
		w.raw(`"@type":`)
		w.shown([]byte(typeURL))
	}
	switch inSecret := w.secret > 0 || strings.HasSuffix("/"+typeURL, "/"+secretName); {
	case w.ShowSecrets:
		w.payload(typeURL)
		w.base64(payload)
	case w.HideUnknown:
		w.hidden = w.hidden || len(payload) > 0
	case w.redacts() || inSecret:
		w.hidden = true
		w.payload(typeURL)
		w.base64([]byte(Redacted))
	default:
		w.payload(typeURL)
		w.base64(payload)
	}
	w.byte('}')
}

// payload begins the member for a payload.
func (w *Writer) payload(typeURL string) {
	if typeURL != "" {
		w.byte(',')
	}
	w.raw(`"value":`)
}
