package resourcejson

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/sensitive"
)

// Redacted stands in place of what is not shown; in JSON in that of bytes its base64.
const Redacted = "[redacted]"

// secretName is the message in which all content that is given inline counts as secret.
const secretName = "envoy.extensions.transport_sockets.tls.v3.Secret"

// inline are the fields that hold the content of a data source.
var inline = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.DataSource.inline_bytes":  true,
	"envoy.config.core.v3.DataSource.inline_string": true,
}

// untyped are the fields that hold a message of any type as a Struct, in which no field is marked: a
// private key looks like any other text there.
var untyped = map[protoreflect.FullName]bool{
	"xds.type.v3.TypedStruct.value":  true,
	"udpa.type.v1.TypedStruct.value": true,
}

// harmless are fields that say where a secret is, and hold none.
var harmless = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.DataSource.filename":                                   true,
	"envoy.config.core.v3.DataSource.environment_variable":                       true,
	"envoy.config.core.v3.WatchedDirectory.path":                                 true,
	"envoy.extensions.transport_sockets.tls.v3.PrivateKeyProvider.provider_name": true,
}

// redacts says whether what is being written is not to be shown.
func (w *Writer) redacts() bool { return w.sensitive > 0 && !w.ShowSecrets }

// redacted stands for a value of a field that is not shown.
func (w *Writer) redacted(f *field) {
	switch f.kind {
	case protoreflect.StringKind:
		text(w, Redacted)
	case protoreflect.BytesKind:
		w.base64([]byte(Redacted))
	case protoreflect.EnumKind:
		w.enum(f.Enum(), 0)
	case protoreflect.BoolKind:
		w.raw("false")
	default: // a number
		w.raw("0")
	}
}

// isSensitive says whether a field that is set in a message holds a credential, or cannot be told not to.
func (w *Writer) isSensitive(l *layout, f *field, fields, at span) bool {
	switch {
	case f.credential, w.secret > 0 && f.inline:
		return true
	case f.header:
		return sensitive.IsHeaderOf(string(w.lastOf(l, fields, l.Fields().ByName("key").Number()).bytes))
	case f.keys:
		var source []byte // whose parts follow one another
		for _, o := range w.found[at.from:at.to] {
			source = append(source, o.bytes...)
		}
		return sensitive.HoldsKeys(source)
	}
	return false
}

// isSensitive says whether a field that is set in a message holds a credential, or cannot be told not to.
func isSensitive(m protoreflect.Message, fd protoreflect.FieldDescriptor) bool {
	return untyped[fd.FullName()] || sensitive.Value(m, fd)
}
