package file

import (
	"strings"
	"unicode"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/internal/redact"
)

// deterministic: what did not change must be the same bytes again.
var deterministic = proto.MarshalOptions{Deterministic: true}

// text reads the text format, in which the messages are told apart by trying.
func (p *parsing) text() (*content, error) {
	if err := nodes(p.data, formatText); err != nil {
		return nil, err
	}
	read := func(m proto.Message) error {
		return p.config.read(func(types Resolver) error {
			return prototext.UnmarshalOptions{Resolver: types, DiscardUnknown: p.config.IgnoreUnknownFields}.Unmarshal(p.data, m)
		})
	}
	response := &discoveryv3.DiscoveryResponse{}
	err := read(response)
	list := &discoveryv3.Resource{}
	if (err != nil || len(response.Resources) == 0) && read(list) == nil && list.Resource != nil {
		return ofResource(list, p.sum, formatText.String())
	}
	if err != nil {
		f := redact.Proto(err)
		return nil, &SyntaxError{Format: formatText.String(), Line: f.Line, Column: f.Column, Entry: -1, Err: f.WithoutPosition()}
	}
	body, err := deterministic.Marshal(response)
	if err != nil {
		return nil, &SyntaxError{Format: formatText.String(), Entry: -1, Err: err}
	}
	return ofBody(body, p.sum, formatText.String())
}

// maxText is how long a text about a fault may be, in bytes.
const maxText = 1024

// printed makes a text fit to be shown, and to be a string of protobuf.
func printed(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return strings.ToValidUTF8(text, string(unicode.ReplacementChar))
}

// typesThenGlobal looks where the program says before it looks in the global registry.
type typesThenGlobal struct{ first Resolver }

func (t typesThenGlobal) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	return either(t.first.FindMessageByName, protoregistry.GlobalTypes.FindMessageByName, name)
}

func (t typesThenGlobal) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return either(t.first.FindMessageByURL, protoregistry.GlobalTypes.FindMessageByURL, url)
}

func (t typesThenGlobal) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return either(t.first.FindExtensionByName, protoregistry.GlobalTypes.FindExtensionByName, name)
}

func (t typesThenGlobal) FindExtensionByNumber(message protoreflect.FullName, n protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	x, err := t.first.FindExtensionByNumber(message, n)
	if err != nil {
		return protoregistry.GlobalTypes.FindExtensionByNumber(message, n)
	}
	return x, nil
}

func either[K, V any](first, second func(K) (V, error), key K) (V, error) {
	v, err := first(key)
	if err != nil {
		return second(key)
	}
	return v, nil
}
