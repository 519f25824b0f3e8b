package xdstp

import (
	"errors"
	"strings"
	"testing"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// field is a length-delimited field.
func field(num protowire.Number, value string) string {
	b := protowire.AppendTag(nil, num, protowire.BytesType)
	return string(protowire.AppendString(b, value))
}

// spec: REDIR-1
func TestDecodeLocator(t *testing.T) {
	message := func(m *xdscorev3.ResourceLocator) string { return string(marshal(t, m)) }
	tests := []struct{ what, input, want string }{
		{"message", message(&xdscorev3.ResourceLocator{
			Authority: "a", ResourceType: "T", Id: "x", ContextParamSpecifier: exact("k", "1"),
			Directives: []*xdscorev3.ResourceLocator_Directive{entry("e")},
		}), "xdstp://a/T/x?k=1#entry=e"},
		{"message of another scheme", message(&xdscorev3.ResourceLocator{
			Scheme: xdscorev3.ResourceLocator_HTTP, ResourceType: "T",
		}), "http:///T"},
		{"string field", field(1, "xdstp://a/T/x?b=1&a=2#entry=e"), "xdstp://a/T/x?a=2&b=1#entry=e"},
		{"string field of a file", field(1, "file:///x"), "file:///x"},
		{"string field given twice", field(1, "xdstp://a/T/x") + field(1, "xdstp://a/T/y"), "xdstp://a/T/y"},
		{"string field among others", field(9, "z") + field(1, "xdstp://a/T/x") + field(8, ""), "xdstp://a/T/x"},
		{"string field in an alternative", field(4, "T") + field(6, field(1, field(1, "xdstp://b/U#entry=e"))), "xdstp:///T#alt=xdstp://b/U%23entry=e"},
		{"repeated key in the string field", field(1, "xdstp:///T?k=1&k=2"), "xdstp:///T?k=2"},
		{"repeated key in the message", field(4, "T") + field(5, field(1, field(1, "k")+field(2, "1"))+field(1, field(1, "k")+field(2, "2"))), "xdstp:///T?k=2"},
		{"repeated key in an alternative", field(1, "xdstp:///T#alt=xdstp:///U?k=1&k=2"), "xdstp:///T#alt=xdstp:///U?k=2"},
		{"unknown fields", field(4, "T") + field(77, "x"), "xdstp:///T"},
		{"text", "xdstp://a/T/x#entry=e", "xdstp://a/T/x#entry=e"},
		{"text over HTTP", "http://a/T/x", "http://a/T/x"},
		{"text of a file", "file:///x", "file:///x"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got, err := DecodeLocator([]byte(tt.input))
			if err != nil || got.String() != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestDecodeLocatorErrors(t *testing.T) {
	nest := func(depth int) string {
		m := field(4, "T")
		for range depth {
			m = field(4, "T") + field(6, field(1, m))
		}
		return m
	}
	tests := []struct{ what, input, want string }{
		{"nothing", "", "xdstp: ResourceLocator.resource_type: is empty"},
		{"cut off", field(4, "T")[:2], "xdstp: ResourceLocator: does not parse: "},
		{"no UTF-8", field(4, "\xff"), "xdstp: ResourceLocator: does not parse: "},
		{"no UTF-8 in the string", field(1, "xdstp://a/T/\xff"), "xdstp: ResourceLocator.resource_locator: is not UTF-8"},
		{"old-style name", field(1, "backend"), `xdstp: ResourceLocator.resource_locator: is no locator: xdstp: "backend": scheme at byte 0: is none of`},
		{"empty string", field(1, ""), `xdstp: ResourceLocator.resource_locator: is no locator: xdstp: "": scheme at byte 0`},
		{"bad directive", field(1, "xdstp:///T#x=y"), `xdstp: ResourceLocator.resource_locator: is no locator: xdstp: "xdstp:///T#x=y": directives at byte 11`},
		{"bad text", "xdstp://a", `xdstp: ResourceLocator: is no locator: xdstp: "xdstp://a": type at byte 9`},
		{"text with a colon only", "xdstp:", "xdstp: ResourceLocator.resource_type: is empty"},
		{"too deep", nest(maxAltDepth + 1), ".directives[0]: alternatives are nested too deep"},
		{"far too deep", nest(1000), "does not parse"},
		{"too deep by text in a message", field(4, "T") + field(6, field(1, field(1, strings.Repeat("xdstp:///T#alt=", maxAltDepth)+"xdstp:///T"))), tooDeep},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			_, err := DecodeLocator([]byte(tt.input))
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Field == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if l, err := DecodeLocator([]byte(nest(maxAltDepth))); err != nil || l.Validate() != nil {
		t.Errorf("eight deep: %v, %v", l, err)
	}
}

// No text that begins with a scheme and "//" is a message, whatever follows.
func TestLocatorTextIsNoMessage(t *testing.T) {
	for _, scheme := range []string{"xdstp://", "http://", "file://"} {
		for _, rest := range []string{"", "a/T/x", field(1, "x"), "\x74\x74\x74", strings.Repeat("\x00", 64)} {
			if err := proto.Unmarshal([]byte(scheme+rest), new(xdscorev3.ResourceLocator)); err == nil {
				t.Errorf("%q is a message", scheme+rest)
			}
		}
	}
}

func TestDecodeDoesNotShare(t *testing.T) {
	for _, b := range [][]byte{
		[]byte("xdstp://a/T/x"),
		[]byte(field(1, "xdstp://a/T/x")),
		[]byte(field(3, "a") + field(4, "T") + field(2, "x")),
	} {
		l, err := DecodeLocator(b)
		if err != nil {
			t.Fatal(err)
		}
		clear(b)
		if got := l.String(); got != "xdstp://a/T/x" {
			t.Errorf("after the bytes changed it is %q", got)
		}
	}
}
