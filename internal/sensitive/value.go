package sensitive

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Value says whether a field that is set in a message holds a credential, where the field alone
// does not tell, too: the value of a header whose key says so, and JSON Web Keys among which one is not public.
func Value(m protoreflect.Message, fd protoreflect.FieldDescriptor) bool {
	switch {
	case IsHeader(fd):
		return IsHeaderOf(m.Get(m.Descriptor().Fields().ByName("key")).String())
	case IsKeySet(fd):
		return holdsKeys(m.Get(fd).Message())
	}
	return Field(fd)
}

// IsHeader says whether a field is the value of a header, whose key is beside it.
func IsHeader(fd protoreflect.FieldDescriptor) bool {
	return fd.FullName() == "envoy.config.core.v3.HeaderValue.value" || fd.FullName() == "envoy.config.core.v3.HeaderValue.raw_value"
}

// IsHeaderOf says whether the value of a header with a key is a credential.
func IsHeaderOf(key string) bool { return header.MatchString(key) }

// header are the names of headers whose values are credentials.
var header = regexp.MustCompile(`(?i)^(proxy-)?authorization$|^(set-)?cookie$|token|secret|password|credential|api-?key`)

// IsKeySet says whether a field holds a set of JSON Web Keys (RFC 7517) as a DataSource. Most sets are of
// public keys.
func IsKeySet(fd protoreflect.FieldDescriptor) bool {
	return fd.Name() == "local_jwks" && fd.Message() != nil && fd.Message().Name() == "DataSource"
}

// HoldsKeys says whether an encoded DataSource with JSON Web Keys has one that is not public.
func HoldsKeys(source []byte) bool {
	var ds corev3.DataSource
	return proto.Unmarshal(source, &ds) != nil || holdsKeys(ds.ProtoReflect())
}

func holdsKeys(source protoreflect.Message) (holds bool) {
	source.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		var text []byte
		switch fd.Name() {
		case "inline_string":
			text = []byte(v.String())
		case "inline_bytes":
			text = v.Bytes()
		default:
			return true
		}
		holds = holdsKey(text)
		return !holds
	})
	return holds
}

// private are the members of a key that are not public (RFC 7518, section 6).
var private = map[string]bool{"k": true, "d": true, "p": true, "q": true, "dp": true, "dq": true, "qi": true, "oth": true}

// holdsKey says whether a text is no object of JSON, or has a member that is not public, at any depth.
func holdsKey(text []byte) bool {
	text = bytes.TrimLeft(text, space)
	if !json.Valid(text) || text[0] != '{' {
		return true
	}
	// H-5: nothing is built of the text, which may have very many small parts.
	for {
		begin := bytes.IndexByte(text, '"')
		if begin < 0 {
			return false
		}
		end := begin + 1
		for ; text[end] != '"'; end++ {
			if text[end] == '\\' {
				end++
			}
		}
		quoted, name := text[begin:end+1], string(text[begin+1:end])
		if text = bytes.TrimLeft(text[end+1:], space); text[0] != ':' {
			continue
		}
		if strings.Contains(name, `\`) && json.Unmarshal(quoted, &name) != nil || private[name] {
			return true
		}
	}
}

// space may stand between the parts of JSON.
const space = " \t\r\n"

// password is that of a URL's authority (RFC 3986, section 3.2.1).
var password = regexp.MustCompile(`(://[^/?#@\s:"]*:)[^/?#\s"]+@`)

// HidePasswords puts another text in the place of each password of a URL.
func HidePasswords(text, by string) string {
	if !MayHoldPassword([]byte(text)) {
		return text
	}
	return password.ReplaceAllString(text, "${1}"+by+"@")
}

// MayHoldPassword says whether a text has what stands around the password of a URL.
func MayHoldPassword(text []byte) bool {
	return bytes.IndexByte(text, '@') >= 0 && bytes.Contains(text, []byte("://"))
}
