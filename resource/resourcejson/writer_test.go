package resourcejson_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// samples are messages of all shapes.
func samples(t testing.TB) []proto.Message {
	metadata, err := structpb.NewStruct(map[string]any{"u": "https://user:" + marker + "@host", "l": []any{1.5, nil, true, map[string]any{"a": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	certificate := &tlsv3.TlsCertificate{CertificateChain: inFile(), PrivateKey: inlineString(), Password: inlineBytes()}
	tls, err := anypb.New(&tlsv3.UpstreamTlsContext{Sni: "sni", CommonTlsContext: &tlsv3.CommonTlsContext{
		AlpnProtocols: []string{"h2", "é"}, TlsCertificates: []*tlsv3.TlsCertificate{certificate},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return []proto.Message{
		&clusterv3.Cluster{
			Name: "c", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}, ConnectTimeout: durationpb.New(1500), LbPolicy: 77,
			Metadata:        &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": metadata, "b": {}}},
			TransportSocket: &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls}},
			LbConfig:        &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(7)}},
		},
		&clusterv3.Cluster{Name: "d", ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "x", TypedConfig: tls}}},
		&tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: certificate}},
		&tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: inFile(), Secrets: map[string]*corev3.DataSource{"a": inlineBytes()}}}},
		&routev3.RouteConfiguration{Name: "r", RequestHeadersToAdd: []*corev3.HeaderValueOption{
			{Header: &corev3.HeaderValue{Key: "Authorization", Value: marker}}, {Header: &corev3.HeaderValue{Key: "x", RawValue: []byte{0xff}}},
		}},
		&routev3.RetryPolicy{RetriableStatusCodes: []uint32{1, 2, 500}, RetryOn: "5xx"},
		&endpointv3.ClusterLoadAssignment{ClusterName: "e", Policy: &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(0)}},
		structpb.NewStructValue(metadata), structpb.NewNullValue(), durationpb.New(-1), wrapperspb.Bytes([]byte(marker)), tls,
		&anypb.Any{Value: []byte(marker)}, &anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte(marker)},
	}
}

// FuzzWriter holds what is written of bytes to what is written of the message that they decode to: parts in any order,
// several times, and broken. Where nothing is hidden, the bytes hold nothing that is to be redacted.
func FuzzWriter(f *testing.F) {
	all := samples(f)
	for i, m := range all {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
		random := rand.New(rand.NewPCG(uint64(i), 0))
		for range 30 {
			other, err := proto.Marshal(all[random.IntN(len(all))])
			if err != nil {
				f.Fatal(err)
			}
			joined := append(append(append([]byte(nil), b...), other...), b[:random.IntN(len(b)+1)]...)
			f.Add(uint8(i), append(joined, b...))
			if len(joined) > 0 {
				joined[random.IntN(len(joined))] ^= 1 << random.IntN(8)
			}
			f.Add(uint8(i), joined)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, raw []byte) {
		m := all[int(which)%len(all)].ProtoReflect().New().Interface()
		url := "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())
		err := proto.Unmarshal(raw, m)
		for _, o := range []resourcejson.Options{{}, {ShowSecrets: true}, {HideUnknown: true, ProtoNames: true}, {HideUnknown: true}} {
			w := resourcejson.NewWriter(o)
			got := string(w.Any(url, raw))
			var members map[string]json.RawMessage
			if err := json.Unmarshal([]byte(got), &members); err != nil {
				t.Fatalf("%+v: %v: %s", o, err, got)
			}
			if err != nil { // its type, and what may be shown of the bytes
				if delete(members, "value"); len(members) > 1 {
					t.Errorf("%+v: %x is no message, and is written as %s", o, raw, got)
				}
				continue
			}
			if want := string(o.Any(url, m)); got != want {
				t.Errorf("%+v: %x is written as\n%s\nand what it decodes to as\n%s", o, raw, got, want)
			}
			if o.HideUnknown && !w.Hides(url, raw) && resourcejson.Redact(proto.Clone(m)) {
				t.Errorf("%x: nothing is hidden, and something is to be redacted", raw)
			}
		}
	})
}

// A text that another replaces is in no form that is shown.
//
// spec: H-3
func TestReplaced(t *testing.T) {
	const filename, inline = 1, 3 // of a DataSource
	source := protowire.AppendString(protowire.AppendTag(nil, inline, protowire.BytesType), marker)
	source = protowire.AppendString(protowire.AppendTag(source, filename, protowire.BytesType), "/etc/key.pem")
	url := "type.googleapis.com/envoy.config.core.v3.DataSource"
	w := resourcejson.NewWriter(resourcejson.Options{HideUnknown: true})
	if !w.Hides(url, source) {
		t.Error("the bytes are said to be as they are shown")
	}
	if got, want := string(w.Any(url, source)), `{"@type":"`+url+`","filename":"/etc/key.pem"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m := &corev3.TypedExtensionConfig{Name: "n", TypedConfig: &anypb.Any{TypeUrl: url, Value: source}}
	if !resourcejson.Redact(m) || string(m.GetTypedConfig().GetValue()) != "\x0a\x0c/etc/key.pem" {
		t.Errorf("redacted: %v", m)
	}
}

// A payload without a type is no more shown than one of a type that is not linked in.
//
// spec: H-3
func TestNoType(t *testing.T) {
	m := &corev3.TypedExtensionConfig{Name: "n", TypedConfig: &anypb.Any{Value: []byte(marker)}}
	if got, want := string(resourcejson.Options{HideUnknown: true}.Message(m)), `{"name":"n","typedConfig":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The bytes of a Secret that are no Secret are not shown, in whichever form its type is written.
//
// spec: H-3
func TestBrokenSecret(t *testing.T) {
	for _, prefix := range []string{"type.googleapis.com/", "/", ""} {
		url := prefix + "envoy.extensions.transport_sockets.tls.v3.Secret"
		m := &anypb.Any{TypeUrl: url, Value: []byte("\xff" + marker)}
		if got, want := string(resourcejson.Options{}.Message(m)), `{"@type":"`+url+`","value":"W3JlZGFjdGVkXQ=="}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Messages that stand in each other through an Any are looked into no deeper than those of one message: a server would
// have the stack grow to hundreds of megabytes.
//
// spec: H-3
func TestNestedThroughAny(t *testing.T) {
	const deep, most = 9_000, 11_000
	url := "type.googleapis.com/envoy.config.rbac.v3.Permission"
	var payload []byte
	for range 5 {
		innermost, err := proto.Marshal(&rbacv3.Permission{Rule: &rbacv3.Permission_Matcher{Matcher: &corev3.TypedExtensionConfig{
			Name: "n", TypedConfig: &anypb.Any{TypeUrl: url, Value: payload},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		payload = negated(innermost, deep)
	}
	m := &anypb.Any{TypeUrl: url, Value: payload}
	text := resourcejson.Options{HideUnknown: true}.Message(m)
	if n := bytes.Count(text, []byte(`"notRule"`)); n < deep || n > most {
		t.Errorf("%d messages are shown, want some %d", n, deep)
	}
	if !resourcejson.Redact(m) || len(m.GetValue()) > len(payload)/2 {
		t.Errorf("%d of %d bytes are left", len(m.GetValue()), len(payload))
	}
}

// negated is a Permission within n others that say not_rule.
func negated(permission []byte, n int) []byte {
	const notRule = 8
	heads, size := make([][]byte, n), len(permission)
	for i := range heads {
		heads[i] = protowire.AppendVarint(protowire.AppendTag(nil, notRule, protowire.BytesType), uint64(size))
		size += len(heads[i])
	}
	slices.Reverse(heads)
	return append(bytes.Join(heads, nil), permission...)
}

// What is replaced, or comes in parts, takes no memory beside the bytes, however much of it there is.
func TestCostOfReplaced(t *testing.T) {
	race.SkipCost(t)
	const size, most = 8 << 20, 40 << 20
	field := func(n protowire.Number, v string) string {
		return string(protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), v))
	}
	many := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	inEachOther := "" // each has a value without a text, and one that null replaces
	for range 3000 {
		inEachOther = field(1, field(2, field(5, inEachOther)+"\x08\x00")) + field(1, field(1, "x"))
	}
	for name, tt := range map[string]struct{ message, payload string }{
		"one field":          {"envoy.config.cluster.v3.Cluster", many(field(1, "x"))},
		"fields in turns":    {"envoy.config.cluster.v3.Cluster", many(field(28, "x") + field(1, "y"))},
		"a oneof":            {"envoy.config.core.v3.DataSource", many(field(1, "x") + field(3, "y"))},
		"messages of one":    {"google.protobuf.Value", many(field(5, "") + field(6, ""))},
		"parts of a message": {"envoy.config.cluster.v3.Cluster", many(field(3, field(1, "")))},
		"in each other":      {"google.protobuf.Struct", inEachOther},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text := resourcejson.NewWriter(resourcejson.Options{}).Any("type.googleapis.com/"+tt.message, []byte(tt.payload))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most || len(text) > 1000 {
			t.Errorf("%s: %d bytes are allocated for %.100s", name, got, text)
		}
	}
}

// What a set of JSON Web Keys holds is told without building it: of three bytes it would be some hundred.
func TestCostOfKeySet(t *testing.T) {
	race.SkipCost(t)
	const size, most = 8 << 20, 100 << 20
	m := jwks(t, `{"keys":[`+strings.Repeat("{},", size/3)+`{}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := resourcejson.Options{}.Message(m)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > most || len(text) < size {
		t.Errorf("%d bytes are allocated for %d", got, len(text))
	}
}
