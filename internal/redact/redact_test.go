package redact_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/yamljson"
)

// secret is what no text may quote.
const secret = "s3cr3t"

// Faults in JSON are told by the path, the kind and the place, with nothing of the content.
//
// spec: H-3
func TestJSON(t *testing.T) {
	const secretURL = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	for _, tt := range []struct {
		text string
		m    proto.Message
		want string
	}{
		{`{"name":5}`, &tlsv3.Secret{}, "name, line 1:9: an invalid value for a string field"},
		{`{"nmae":"s3cr3t"}`, &tlsv3.Secret{}, `line 1:2: an unknown field; did you mean "name"?`},
		{`{"s3cr3t":1}`, &tlsv3.Secret{}, "line 1:2: an unknown field"},
		{`{"name":"a","name":"s3cr3t"}`, &tlsv3.Secret{}, "name, line 1:13: a field is there twice"},
		{`{"tls_certificate":{"private_key":{"inline_bytes":"!s3cr3t"}}}`, &tlsv3.Secret{}, "tls_certificate.private_key.inline_bytes, line 1:51: an invalid value for a bytes field"},
		{"{\n\"tlsCertificate\": {\n  \"privateKey\": \"s3cr3t\"}}", &tlsv3.Secret{}, "tls_certificate.private_key, line 3:17: a value of another kind than is wanted"},
		{`{"validation_context":{"match_typed_subject_alt_names":[{},{"san_type":"s3cr3t"}]}}`, &tlsv3.Secret{}, "validation_context.match_typed_subject_alt_names[1].san_type, line 1:72: an invalid value for an enum field"},
		{`{"generic_secret":{"secrets":{"s3cr3t":{"inline_string":7}}}}`, &tlsv3.Secret{}, "generic_secret.secrets.….…, line 1:57: an invalid value for a string field"},
		{`{"name":"a","generic_secret":{},"session_ticket_keys":{}}`, &tlsv3.Secret{}, "session_ticket_keys, line 1:33: a second field of a oneof"},
		{`{"name":s3cr3t}`, &tlsv3.Secret{}, "name, line 1:9: it does not parse"},
		{`{"name":"\s3cr3t"}`, &tlsv3.Secret{}, "name, line 1:9: an escape in a string that there is not"},
		{`{"name":"s3cr3t`, &tlsv3.Secret{}, "the content ends too early"},
		{`{"connect_timeout":"s3cr3t"}`, &clusterv3.Cluster{}, "connect_timeout, line 1:20: an invalid google.protobuf.Duration"},
		{`{"metadata":{"filter_metadata":{"s3cr3t":7}}}`, &clusterv3.Cluster{}, "metadata.filter_metadata.…, line 1:42: a value of another kind than is wanted"},
		{`{"@type":"` + secretURL + `","name":"a","tls_certificate":{"s3cr3t":1}}`, &anypb.Any{}, "tls_certificate, line 1:111: an unknown field"},
		{`{"@type":"s3cr3t"}`, &anypb.Any{}, "@type, line 1:10: a type that is not known to the program"},
		{`{"@type":"type.googleapis.com/no.such.Type"}`, &anypb.Any{}, `@type, line 1:10: the type "type.googleapis.com/no.such.Type" is not known to the program`},
		{`{"name":"s3cr3t"}`, &anypb.Any{}, "line 1:1: an Any without a type"},
	} {
		types := protoregistry.GlobalTypes
		err := protojson.UnmarshalOptions{Resolver: types}.Unmarshal([]byte(tt.text), tt.m)
		if err == nil {
			t.Fatalf("%s parses", tt.text)
		}
		if got := redact.JSON(err, []byte(tt.text), tt.m.ProtoReflect().Descriptor(), types).Error(); got != tt.want {
			t.Errorf("%s: %q, want %q\n(%v)", tt.text, got, tt.want, err)
		}
	}
}

// Whatever byte of a text is broken, nothing of it is quoted.
//
// spec: H-3
func TestNothingIsQuoted(t *testing.T) {
	if testing.Short() {
		t.Skip("long: every byte of the texts")
	}
	m := &tlsv3.Secret{Name: secret, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
		Secret:  &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: secret}},
		Secrets: map[string]*corev3.DataSource{secret: {Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte(secret)}}},
	}}}
	inJSON, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	inText, err := prototext.MarshalOptions{Multiline: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	inYAML := []byte("name: " + secret + "\ngeneric_secret:\n  secrets:\n    " + secret + ": {inline_string: &a " + secret + "}\n  secret: *a\n")
	faults := 0
	check := func(text []byte, f *redact.Fault) {
		faults++
		if strings.Contains(f.Error(), secret) {
			t.Errorf("%s: %v", text, f)
		}
	}
	breaks := []byte("\"{}[]:,!x0\\\n\t*&?-\xff")
	each := func(text []byte, try func([]byte)) {
		for i := range text {
			for _, c := range breaks {
				broken := append(append(append([]byte{}, text[:i]...), c), text[i:]...)
				try(broken)
				broken[i+1] = ' '
				try(broken)
			}
			try(text[:i])
		}
	}
	each(inJSON, func(text []byte) {
		if err := protojson.Unmarshal(text, &tlsv3.Secret{}); err != nil {
			check(text, redact.JSON(err, text, m.ProtoReflect().Descriptor(), protoregistry.GlobalTypes))
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			check(text, &redact.Fault{What: redact.SyntaxJSON(err)})
		}
	})
	each(inText, func(text []byte) {
		if err := prototext.Unmarshal(text, &tlsv3.Secret{}); err != nil {
			check(text, redact.Proto(err))
		}
	})
	each(inYAML, func(text []byte) {
		root, err := yamljson.Read(text)
		if err == nil {
			err = (&yamljson.Writer{Limit: 1000}).Value(root)
		}
		if err != nil {
			check(text, redact.YAML(err))
		}
	})
	if faults < 1000 {
		t.Errorf("no more than %d faults", faults)
	}
}

// Rules of messages are told without keys of maps and causes, which quote content.
//
// spec: H-3
func TestValidation(t *testing.T) {
	inner := rule{"Value", "value must be a valid URI", errors.New("parse " + secret), "InnerValidationError"}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{(&clusterv3.Cluster{}).Validate(), "invalid Cluster.Name: value length must be at least 1 runes"},
		{rule{"Things[7]", "embedded message failed validation", rule{"Of[" + secret + "]", "embedded", inner, "MidValidationError"}, "OuterValidationError"},
			"invalid Outer.Things[7].Of[…].Value: value must be a valid URI"},
		{errors.New("the program's own"), "the program's own"},
	} {
		err := redact.Validation(tt.err)
		if err.Error() != tt.want || strings.Contains(fmt.Sprintf("%#v", err), secret) {
			t.Errorf("%v\n%#v\nwant %v", err, err, tt.want)
		}
		if !errors.Is(err, tt.err) {
			t.Errorf("%v: the error itself is lost", err)
		}
	}
	if err := redact.Validation(nil); err != nil {
		t.Errorf("no error is %v", err)
	}
}

// rule is an error as protoc-gen-validate makes them.
type rule struct {
	field, reason string
	cause         error
	name          string
}

func (r rule) Field() string     { return r.field }
func (r rule) Reason() string    { return r.reason }
func (r rule) Cause() error      { return r.cause }
func (r rule) Key() bool         { return false }
func (r rule) ErrorName() string { return r.name }
func (r rule) Error() string     { return r.field + r.reason + fmt.Sprint(r.cause) }

// A panic is told by its type and place; what the runtime says is told.
//
// spec: H-3
func TestPanic(t *testing.T) {
	told := func(f func()) (text string) {
		defer func() { text = redact.Panic(recover()) }()
		f()
		return ""
	}
	var none []int
	for _, tt := range []struct {
		panics func()
		want   string
	}{
		{func() { panic(secret) }, "a value of type string at redact_test.TestPanic.func2"},
		{func() { panic(fmt.Errorf("%s", secret)) }, "a value of type *errors.errorString at "},
		{func() { _ = none[len(secret)] }, "runtime error: index out of range [6] with length 0 at redact_test.TestPanic.func4"},
	} {
		if got := told(tt.panics); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
