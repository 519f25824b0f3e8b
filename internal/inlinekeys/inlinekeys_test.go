package inlinekeys

import (
	"errors"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	apikeyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/api_key_auth/v3"
	injectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/credential_injector/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	genericv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/injected_credentials/generic/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

func packed(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func jwks(source *corev3.DataSource) *jwtv3.JwtAuthentication {
	return &jwtv3.JwtAuthentication{Providers: map[string]*jwtv3.JwtProvider{
		"p": {JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: source}},
	}}
}

func inlineString(s string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
}

// spec: LKG-1
func TestCheck(t *testing.T) {
	file := &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "/key"}}
	env := &corev3.DataSource{Specifier: &corev3.DataSource_EnvironmentVariable{EnvironmentVariable: "KEY"}}
	bytes := &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("key")}}
	with := func(tls proto.Message) *clusterv3.Cluster {
		return &clusterv3.Cluster{Name: "c", TransportSocket: &corev3.TransportSocket{
			ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(t, tls)},
		}}
	}
	certificate := func(key *corev3.DataSource) *clusterv3.Cluster {
		return with(&tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsCertificates: []*tlsv3.TlsCertificate{{PrivateKey: key, CertificateChain: file}},
		}})
	}
	filter := func(m proto.Message) *listenerv3.Listener {
		hcm := &hcmv3.HttpConnectionManager{HttpFilters: []*hcmv3.HttpFilter{{
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(t, m)},
		}}}
		return &listenerv3.Listener{FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(t, hcm)},
		}}}}}
	}
	token := &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: &corev3.GrpcService_GoogleGrpc{
		CallCredentials: []*corev3.GrpcService_GoogleGrpc_CallCredentials{{
			CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_AccessToken{AccessToken: "key"},
		}},
	}}}
	unknown := with(&tlsv3.UpstreamTlsContext{})
	unknown.GetTransportSocket().GetTypedConfig().TypeUrl = "type.googleapis.com/of.Nobody"
	newer := &corev3.DataSource{}
	newer.ProtoReflect().SetUnknown([]byte{0xa2, 6, 3, 'k', 'e', 'y'}) // field 100
	newNumber := &corev3.DataSource{}
	newNumber.ProtoReflect().SetUnknown([]byte{0x30, 1}) // field 6
	newerPlain := &clusterv3.Cluster{Name: "c"}
	newerPlain.ProtoReflect().SetUnknown([]byte{0xa2, 6, 3, 'k', 'e', 'y'})
	nested := with(&tlsv3.UpstreamTlsContext{})
	for range 60 { // deep, but not too deep
		nested = &clusterv3.Cluster{TransportSocketMatches: []*clusterv3.Cluster_TransportSocketMatch{{
			TransportSocket: &corev3.TransportSocket{ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(t, nested)}},
		}}}
	}
	var none *UnknownError
	for what, c := range map[string]struct {
		m    proto.Message
		want error
	}{
		"plain":                               {&clusterv3.Cluster{Name: "c", AltStatName: "x"}, nil},
		"endpoints":                           {&endpointv3.ClusterLoadAssignment{ClusterName: "c", Endpoints: []*endpointv3.LocalityLbEndpoints{{}}}, nil},
		"routes":                              {&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{{Domains: []string{"*"}}}}, nil},
		"key in a file":                       {certificate(file), nil},
		"key in the environment":              {certificate(env), nil},
		"key as text":                         {certificate(inlineString("key")), ErrInline},
		"key as bytes":                        {certificate(bytes), ErrInline},
		"key in a field that is not known":    {certificate(newer), ErrInline},
		"key in a number that is not known":   {certificate(newNumber), ErrInline},
		"a field that is not known elsewhere": {newerPlain, nil},
		"a credential that a filter adds": {filter(&injectorv3.CredentialInjector{Credential: &corev3.TypedExtensionConfig{
			TypedConfig: packed(t, &genericv3.Generic{}),
		}}), ErrInline},
		"CA inline": {with(&tlsv3.DownstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{
				ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inlineString("ca")},
			},
		}}), ErrInline},
		"ticket keys": {with(&tlsv3.DownstreamTlsContext{SessionTicketKeysType: &tlsv3.DownstreamTlsContext_SessionTicketKeys{
			SessionTicketKeys: &tlsv3.TlsSessionTicketKeys{Keys: []*corev3.DataSource{bytes}},
		}}), ErrInline},
		"a Secret":               {&tlsv3.Secret{Name: "s"}, ErrInline},
		"a Secret inside":        {with(&tlsv3.Secret{Name: "s"}), ErrInline},
		"a Secret in a filter":   {filter(&tlsv3.Secret{Name: "s"}), ErrInline},
		"inline code":            {filter(&luav3.Lua{DefaultSourceCode: inlineString("return")}), nil},
		"an access token":        {token, ErrInline},
		"an API key":             {filter(&apikeyv3.ApiKeyAuth{Credentials: []*apikeyv3.Credential{{Key: "key"}}}), ErrInline},
		"public keys of tokens":  {filter(jwks(inlineString(`{"keys":[{"kty":"RSA","n":"x"}]}`))), nil},
		"a secret key of tokens": {filter(jwks(inlineString(`{"keys":[{"kty":"RSA","n":"x"},{"kty":"oct","k":"key"}]}`))), ErrInline},
		"broken keys of tokens":  {filter(jwks(bytes)), ErrInline},
		"keys in a file":         {filter(jwks(file)), nil},
		"what nobody knows":      {unknown, none},
		"Any in Any, sixty deep": {nested, errBytes},
	} {
		var s Scanner
		for range 2 { // the second time with what was learnt
			err := s.Check("type.googleapis.com/"+string(c.m.ProtoReflect().Descriptor().FullName()), packed(t, c.m).GetValue())
			if c.want == error(none) {
				if !errors.As(err, &none) || none.TypeURL != "type.googleapis.com/of.Nobody" {
					t.Errorf("%s: %v, want that the type is unknown", what, err)
				}
				none = nil
			} else if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
		}
	}
}

// spec: LKG-1
func TestCheckOfBrokenBytes(t *testing.T) {
	var s Scanner
	const url = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	for _, b := range [][]byte{{0xff}, {0x0a, 0xff}, {0x0a, 5, 'a'}, {0}, {0xc2, 1, 2, 0x1a, 9}, {0xc2, 1, 4, 0x1a, 2, 0x0a, 9}, {0xc2, 1, 5, 0x1a, 3, 0x12, 1, 'x'}} {
		if err := s.Check(url, b); err == nil {
			t.Errorf("% x passes", b)
		}
	}
	if err := s.Check(url, []byte{0xc2, 1, 2, 0x1a, 0}); err != nil {
		t.Errorf("an empty Any: %v", err)
	}
}

// FuzzCheck looks for bytes that are let through and that protobuf finds a key in.
func TestCheckAllocatesNothing(t *testing.T) {
	// Under 128 bytes, and over: a length of two.
	for _, sni := range []string{"a.example", strings.Repeat("a", 200)} {
		a := packed(t, &clusterv3.Cluster{Name: "c", TransportSocket: &corev3.TransportSocket{ConfigType: &corev3.TransportSocket_TypedConfig{
			TypedConfig: packed(t, &tlsv3.UpstreamTlsContext{Sni: sni}),
		}}})
		var s Scanner
		if n := testing.AllocsPerRun(100, func() {
			if err := s.Check(a.GetTypeUrl(), a.GetValue()); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("Check of a cluster with an Any in it makes %v allocations", n)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("\x0a\x01c"))
	key := &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{{PrivateKey: inlineString("key")}}}}
	b, err := proto.Marshal(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Scanner
		var m tlsv3.UpstreamTlsContext
		if s.Check("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", b) != nil || proto.Unmarshal(b, &m) != nil {
			return
		}
		for _, c := range m.GetCommonTlsContext().GetTlsCertificates() {
			if k := c.GetPrivateKey(); k.GetInlineString() != "" || len(k.GetInlineBytes()) > 0 {
				t.Errorf("% x passes", b)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	cla := &endpointv3.ClusterLoadAssignment{ClusterName: "c"}
	for range 5 {
		l := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: "z"}}
		for range 4 {
			l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
				}}},
			}}})
		}
		cla.Endpoints = append(cla.Endpoints, l)
	}
	a := packed(b, cla)
	b.Run("check", func(b *testing.B) {
		var s Scanner
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Check(a.GetTypeUrl(), a.GetValue()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		for b.Loop() {
			if err := proto.Unmarshal(a.GetValue(), new(endpointv3.ClusterLoadAssignment)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
