package resourcejson_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	apikeyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/api_key_auth/v3"
	awslambdav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/aws_lambda/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	accesstokenv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/grpc_service/call_credentials/access_token/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

const marker = "MARK3R"

func inlineString() *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: marker}}
}

func inlineBytes() *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte(marker)}}
}

func inFile() *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "/etc/key.pem"}}
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// standsIn is what is written in place of a secret: in a string, in bytes and in a Struct.
var standsIn = regexp.MustCompile(`\[redacted\]|"W3JlZGFjdGVkXQ=="|"value":\{\}`)

// Contents of Secrets, and what the protos mark as sensitive, are shown only if that is asked for.
//
// spec: H-3
func TestRedacted(t *testing.T) {
	certificate := &tlsv3.TlsCertificate{CertificateChain: inFile(), PrivateKey: inlineString(), Password: inlineBytes(), Pkcs12: inlineBytes()}
	provider, err := structpb.NewStruct(map[string]any{"key": marker})
	if err != nil {
		t.Fatal(err)
	}
	secret := func(s *tlsv3.Secret) *tlsv3.Secret { s.Name = "s"; return s }
	inCluster := &clusterv3.Cluster{Name: "s", TransportSocket: &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: packed(t, &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{certificate}}}),
	}}}
	inStruct, err := structpb.NewStruct(map[string]any{"tls_certificates": []any{map[string]any{"private_key": map[string]any{"inline_string": marker}}}})
	if err != nil {
		t.Fatal(err)
	}
	socket := func(m proto.Message) proto.Message {
		return &clusterv3.Cluster{Name: "s", TransportSocket: &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(t, m)}}}
	}
	const contextURL = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.CommonTlsContext"
	for name, m := range map[string]proto.Message{
		"in a TypedStruct":       socket(&xdstypev3.TypedStruct{TypeUrl: contextURL, Value: inStruct}),
		"in an old TypedStruct":  socket(&udpatypev1.TypedStruct{TypeUrl: contextURL, Value: inStruct}),
		"in a TypedStruct's Any": socket(packed(t, &xdstypev3.TypedStruct{TypeUrl: contextURL, Value: inStruct})),
		"certificate":            secret(&tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: certificate}}),
		"provider": secret(&tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{PrivateKeyProvider: &tlsv3.PrivateKeyProvider{
			ProviderName: "p", ConfigType: &tlsv3.PrivateKeyProvider_TypedConfig{TypedConfig: packed(t, provider)}}}}}),
		"unknown provider": secret(&tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{PrivateKeyProvider: &tlsv3.PrivateKeyProvider{
			ProviderName: "p", ConfigType: &tlsv3.PrivateKeyProvider_TypedConfig{TypedConfig: &anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte(marker)}}}}}}),
		"lists in a provider": secret(&tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{PrivateKeyProvider: &tlsv3.PrivateKeyProvider{
			ProviderName: "p", ConfigType: &tlsv3.PrivateKeyProvider_TypedConfig{TypedConfig: packed(t, &routev3.RetryPolicy{
				RetryOn: marker, RetriableStatusCodes: []uint32{500}, RetryHostPredicate: []*routev3.RetryPolicy_RetryHostPredicate{{Name: marker}}})}}}}}),
		"validation": secret(&tlsv3.Secret{Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inlineString()}}}),
		"tickets":    secret(&tlsv3.Secret{Type: &tlsv3.Secret_SessionTicketKeys{SessionTicketKeys: &tlsv3.TlsSessionTicketKeys{Keys: []*corev3.DataSource{inlineBytes(), inFile()}}}}),
		"generic": secret(&tlsv3.Secret{Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
			Secret: inlineString(), Secrets: map[string]*corev3.DataSource{"a": inlineBytes()}}}}),
		"in a cluster": inCluster,
		"call credentials": callCredentials(t, &corev3.GrpcService_GoogleGrpc_CallCredentials{
			CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_AccessToken{AccessToken: marker}}),
		"key of an account": callCredentials(t, &corev3.GrpcService_GoogleGrpc_CallCredentials{
			CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_ServiceAccountJwtAccess{
				ServiceAccountJwtAccess: &corev3.GrpcService_GoogleGrpc_CallCredentials_ServiceAccountJWTAccessCredentials{JsonKey: marker}}}),
		"a plugin's token": &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &accesstokenv3.AccessTokenCredentials{Token: marker})},
		"keys of AWS": &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &awslambdav3.Config{
			Arn: "s", Credentials: &awslambdav3.Credentials{SecretAccessKey: marker, SessionToken: marker}})},
		"a tracer's token": &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &tracev3.LightstepConfig{
			CollectorCluster: "s", AccessToken: inlineString()})},
		"an API key": &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &apikeyv3.ApiKeyAuth{
			Credentials: []*apikeyv3.Credential{{Key: marker, Client: "c"}}})},
		"a symmetric key for tokens": jwks(t, `{"keys":[{"kty":"RSA","n":"x"},{"kty":"oct","\u006b":"`+marker+`"}]}`),
		"a private key for tokens":   jwks(t, `{"keys":[{"kty":"EC","d":"`+marker+`"}]}`),
		"keys that do not parse":     jwks(t, `{"keys":[{"kty":"`+marker+`"`),
		"a key alone":                jwks(t, `{"kty":"oct","k":"`+marker+`"}`),
		"keys of another shape":      jwks(t, `{"keys":{"k":"`+marker+`"}}`),
		"a header": &routev3.RouteConfiguration{Name: "s", RequestHeadersToAdd: []*corev3.HeaderValueOption{
			{Header: &corev3.HeaderValue{Key: "Authorization", Value: "Bearer " + marker}}}},
		"a header in bytes": &routev3.RouteConfiguration{Name: "s", RequestHeadersToAdd: []*corev3.HeaderValueOption{
			{Header: &corev3.HeaderValue{Key: "x-api-key", RawValue: []byte(marker)}}}},
		"metadata of a service": &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &corev3.GrpcService{
			InitialMetadata: []*corev3.HeaderValue{{Key: "x-auth-token", Value: marker}}})},
		"a URL": &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &corev3.HttpUri{Uri: "https://user:" + marker + "@host/path"})},
		"a URL in metadata": &clusterv3.Cluster{Name: "s", Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": {
			Fields: map[string]*structpb.Value{"u": structpb.NewStringValue("https://user:" + marker + "@host"), "v": structpb.NewStringValue("x@y")}}}}},
		"URLs as keys": &clusterv3.Cluster{Name: "s", Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"https://user:" + marker + "@host": {
			Fields: map[string]*structpb.Value{"https://user:" + marker + "@host": structpb.NewStringValue("x")}}}}},
		"a URL of a type": &corev3.TypedExtensionConfig{Name: "s", TypedConfig: &anypb.Any{TypeUrl: "https://user:" + marker + "@host/envoy.config.core.v3.Address"}},
		"URLs in a text":  &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &corev3.HttpUri{Uri: "a://u@h b://x:" + marker + "@y c://:" + marker + "%40" + marker + "@z"})},
		"in an extension": &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &basicauthv3.BasicAuth{Users: inlineString()})},
		"in an Any":       &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, secret(&tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: certificate}}))},
	} {
		inBase64 := base64.StdEncoding.EncodeToString([]byte(marker))
		hidden, shown := string(resourcejson.Options{}.Message(m)), string(resourcejson.Options{ShowSecrets: true}.Message(m))
		if strings.Contains(hidden, marker) || strings.Contains(hidden, inBase64) || !standsIn.MatchString(hidden) {
			t.Errorf("%s: %s", name, hidden)
		}
		if !strings.Contains(shown, marker) && !strings.Contains(shown, inBase64) || strings.Contains(shown, resourcejson.Redacted) {
			t.Errorf("%s, asked for: %s", name, shown)
		}
		readable := m.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal([]byte(hidden), readable); err != nil && name != "unknown provider" {
			t.Errorf("%s: what is redacted cannot be read: %v", name, err)
		}
		if !json.Valid([]byte(hidden)) || !strings.Contains(hidden, `"name":"s"`) {
			t.Errorf("%s: %s", name, hidden)
		}
		copied := proto.Clone(m)
		changed := resourcejson.Redact(copied)
		binary, err := proto.Marshal(copied)
		if err != nil || !changed || strings.Contains(string(binary), marker) {
			t.Errorf("%s: Redact changed %v, %v: %s", name, changed, err, binary)
		}
		if strings.Contains(shown, "/etc/key.pem") != strings.Contains(hidden, "/etc/key.pem") {
			t.Errorf("%s: where the secret is, is left out of %s", name, hidden)
		}
	}
	if text := (resourcejson.Options{HideUnknown: true, ProtoNames: true}).Message(inCluster); !strings.Contains(string(text), `"transport_socket"`) {
		t.Errorf("names of the proto files: %s", text)
	}
	for name, m := range map[string]proto.Message{
		"public keys": jwks(t, `{"keys":[{"kty":"RSA","n":"x","e":"AQAB","alg":"RS256"},{"kty":"EC","x":"a","y":"b","crv":"P-256"}]}`),
		"headers": &routev3.RouteConfiguration{RequestHeadersToAdd: []*corev3.HeaderValueOption{
			{Header: &corev3.HeaderValue{Key: "x-forwarded-proto", Value: "https"}}, {Header: &corev3.HeaderValue{Key: "authorization"}}}},
		"URLs": &corev3.HttpUri{Uri: "https://user@host:8080/a:b@c"},
	} {
		if got := string(resourcejson.Options{}.Message(m)); strings.Contains(got, resourcejson.Redacted) || resourcejson.Redact(m) {
			t.Errorf("%s: %s", name, got)
		}
	}
	plain := &clusterv3.Cluster{Name: "s", Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": provider}}}
	if got := string(resourcejson.Options{}.Message(plain)); strings.Contains(got, resourcejson.Redacted) {
		t.Errorf("what is no secret: %s", got)
	}
	if resourcejson.Redact(plain) {
		t.Errorf("what is no secret is changed: %v", plain)
	}
}

// What nobody can tell is left out: messages that are not linked in, bytes that are no message, fields that the
// type does not know.
func TestRedactUnknown(t *testing.T) {
	filter := func(a *anypb.Any) proto.Message { return &corev3.TypedExtensionConfig{Name: "n", TypedConfig: a} }
	future := &corev3.TypedExtensionConfig{Name: "n"}
	future.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 999, protowire.BytesType), marker))
	for name, m := range map[string]proto.Message{
		"not linked in": filter(&anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte(marker)}),
		"no message":    filter(&anypb.Any{TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster", Value: []byte(marker + "\xff")}),
		"later field":   future,
	} {
		text := string(resourcejson.Options{HideUnknown: true}.Message(m))
		changed := resourcejson.Redact(m)
		binary, err := proto.Marshal(m)
		if err != nil || !changed || strings.Contains(string(binary), marker) {
			t.Errorf("%s: changed %v, %v: %s", name, changed, err, binary)
		}
		if encoded := base64.StdEncoding.EncodeToString([]byte(marker)); strings.Contains(text, encoded[:6]) || strings.Contains(text, marker) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// A set of JSON Web Keys is shown if each name in it is one of a public key.
//
// spec: H-3
func TestKeySets(t *testing.T) {
	for text, shown := range map[string]bool{
		`{"keys":[{"kty":"RSA","n":"k","e":"\"d\":"}]}`: true, ` {} `: true, `{"keys":[{"a":"d","b" : 1}]}`: true,
		`{"keys":[{"k":"` + marker + `"}]}`: false, `{"keys":[{"\u006b" : "` + marker + `"}]}`: false, `{"a":{"d":[]},"a":"` + marker + `"}`: false,
		`["` + marker + `"]`: false, `{"a":"` + marker + `"`: false, `{"a":"` + marker + `"} x`: false, `"` + marker + `"`: false, marker: false, "": false,
	} {
		m := jwks(t, text)
		if got := (resourcejson.Options{}).Message(m); bytes.Contains(got, []byte(resourcejson.Redacted)) == shown || resourcejson.Redact(m) == shown {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func jwks(t *testing.T, text string) proto.Message {
	return &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &jwtv3.JwtAuthentication{Providers: map[string]*jwtv3.JwtProvider{
		"p": {JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: &corev3.DataSource{
			Specifier: &corev3.DataSource_InlineString{InlineString: text}}}}}})}
}

func callCredentials(t *testing.T, c *corev3.GrpcService_GoogleGrpc_CallCredentials) proto.Message {
	return &corev3.TypedExtensionConfig{Name: "s", TypedConfig: packed(t, &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{
		GoogleGrpc: &corev3.GrpcService_GoogleGrpc{CallCredentials: []*corev3.GrpcService_GoogleGrpc_CallCredentials{c}},
	}})}
}
