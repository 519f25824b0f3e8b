package restjson

import (
	"encoding/json"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// nameOf finds the name of a resource that cannot be read as a whole: the wrapper's, or
// else the first field of the message, which it is in all of Envoy's types. Where the type
// is unknown the field is taken to be called "name".
func (d decoder) nameOf(fields map[string]json.RawMessage) string {
	if inner := payload(fields); inner != nil {
		if name := text(fields["name"]); name != "" {
			return name
		}
		fields = inner
	}
	url := text(fields["@type"])
	if mt, err := d.types.FindMessageByURL(url); err == nil {
		f := mt.Descriptor().Fields().ByNumber(1)
		if f == nil || f.Kind() != protoreflect.StringKind || f.IsList() {
			return ""
		}
		if name := text(fields[f.JSONName()]); name != "" {
			return name
		}
		return text(fields[f.TextName()])
	}
	return text(fields["name"])
}

// variantOf is the name of a wrapper with its constraints (xRFC TP2), so that what is for
// others stays so; nil if there is none that can be read.
func variantOf(fields map[string]json.RawMessage) *discoveryv3.ResourceName {
	raw := fields["resource_name"]
	if raw == nil {
		raw = fields["resourceName"]
	}
	n := &discoveryv3.ResourceName{}
	if payload(fields) == nil || raw == nil || (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, n) != nil {
		return nil
	}
	return n
}

// payload is what a wrapper holds; nil of any other message.
func payload(fields map[string]json.RawMessage) (inner map[string]json.RawMessage) {
	if text(fields["@type"]) != wire.WrapperURL {
		return nil
	}
	inner = map[string]json.RawMessage{}
	_ = json.Unmarshal(fields["resource"], &inner) // what is no object has no fields
	return inner
}

// text is a JSON string, or "".
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}
