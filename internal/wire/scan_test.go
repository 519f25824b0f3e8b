package wire

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/internal/race"
)

const fooURL = "type.googleapis.com/test.Foo"

// equalResponses compares responses, faults by whether there is one, and metadata by what it
// says.
var equalResponses = []cmp.Option{
	cmpopts.IgnoreUnexported(Response{}),
	cmp.FilterPath(func(p cmp.Path) bool { return !isConstraints(p) }, cmpopts.EquateEmpty()),
	cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) }),
	cmp.Comparer(func(a, b *Attributes) bool {
		if a == nil {
			a = &Attributes{}
		}
		if b == nil {
			b = &Attributes{}
		}
		var ma, mb corev3.Metadata
		return slices.EqualFunc(a.Aliases, b.Aliases, bytes.Equal) && a.DoNotCache == b.DoNotCache && (bytes.Equal(a.Metadata, b.Metadata) ||
			proto.Unmarshal(a.Metadata, &ma) == nil && proto.Unmarshal(b.Metadata, &mb) == nil && proto.Equal(&ma, &mb))
	}),
	cmp.FilterPath(isConstraints, cmp.Comparer(sameConstraints)),
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func foo(value string) *anypb.Any { return &anypb.Any{TypeUrl: fooURL, Value: []byte(value)} }

func wrap(t testing.TB, r *discoveryv3.Resource) *anypb.Any {
	return &anypb.Any{TypeUrl: WrapperURL, Value: marshal(t, r)}
}

func resourceError(name string, code int32, message string) *discoveryv3.ResourceError {
	return &discoveryv3.ResourceError{
		ResourceName: &discoveryv3.ResourceName{Name: name},
		ErrorDetail:  &status.Status{Code: code, Message: message},
	}
}

func sotwFrames(t testing.TB) map[string]*discoveryv3.DiscoveryResponse {
	return map[string]*discoveryv3.DiscoveryResponse{
		"empty": {},
		"full": {
			VersionInfo: "7", Nonce: "n", TypeUrl: fooURL, Canary: true,
			Resources:      []*anypb.Any{foo("x"), foo(""), {}},
			ControlPlane:   &corev3.ControlPlane{Identifier: "cp"},
			ResourceErrors: []*discoveryv3.ResourceError{resourceError("gone", 5, "no"), {}},
		},
		"wrapped": {TypeUrl: fooURL, Resources: []*anypb.Any{
			wrap(t, &discoveryv3.Resource{Name: "a", Resource: foo("x"), Version: "v", Aliases: []string{"b", "c"}}),
			wrap(t, &discoveryv3.Resource{Name: "a", Ttl: durationpb.New(time.Minute)}),
			wrap(t, &discoveryv3.Resource{}),
			wrap(t, &discoveryv3.Resource{ResourceName: &discoveryv3.ResourceName{Name: "d"}, Resource: foo("y")}),
			wrap(t, &discoveryv3.Resource{ResourceName: variant("v", value("env", "prod")), Resource: foo("z")}),
			wrap(t, &discoveryv3.Resource{Name: "twice", Resource: wrap(t, &discoveryv3.Resource{Name: "in"})}),
		}},
		"names are bytes": {VersionInfo: "\x00", Nonce: "é", Resources: []*anypb.Any{
			wrap(t, &discoveryv3.Resource{Name: "a\nb", Resource: &anypb.Any{Value: []byte{0xff, 0}}}),
		}},
	}
}

func deltaFrames(_ testing.TB) map[string]*discoveryv3.DeltaDiscoveryResponse {
	return map[string]*discoveryv3.DeltaDiscoveryResponse{
		"empty": {},
		"full": {
			SystemVersionInfo: "7", Nonce: "n", TypeUrl: fooURL,
			Resources: []*discoveryv3.Resource{
				{Name: "a", Version: "1", Resource: foo("x"), Aliases: []string{"z"}},
				{Name: "b", Version: "2", Ttl: &durationpb.Duration{Seconds: 1, Nanos: 5}},
				{ResourceName: &discoveryv3.ResourceName{Name: "c"}, Resource: &anypb.Any{}},
				{Name: "d", CacheControl: &discoveryv3.Resource_CacheControl{DoNotCache: true}, Metadata: &corev3.Metadata{
					TypedFilterMetadata: map[string]*anypb.Any{"m": foo("x"), "n": foo("y")},
				}},
				{Name: "f", CacheControl: &discoveryv3.Resource_CacheControl{}, Metadata: &corev3.Metadata{}},
				{ResourceName: variant("v", exists("env")), Resource: foo("z")},
				{ResourceName: variant("w", not(exists("env"))), Resource: foo("z")},
				{ResourceName: variant("any", &discoveryv3.DynamicParameterConstraints{})},
				{},
			},
			RemovedResources:     []string{"p", "", "q"},
			RemovedResourceNames: []*discoveryv3.ResourceName{{Name: "r"}, variant("v", value("env", "test"))},
			ControlPlane:         &corev3.ControlPlane{Identifier: "cp"},
			ResourceErrors: []*discoveryv3.ResourceError{
				resourceError("e", -1, "é"), resourceError("", 0, ""), {ResourceName: variant("v", exists("env"))},
			},
		},
	}
}

// spec: TYPE-5, ERR-6, ADS-1
func TestScanSotW(t *testing.T) {
	for name, m := range sotwFrames(t) {
		t.Run(name, func(t *testing.T) {
			frame := marshal(t, m)
			got, err := ScanSotW(frame)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := fromSotW(m, len(frame))
			if diff := cmp.Diff(want, got, equalResponses...); diff != "" {
				t.Errorf("scanned (-generated +scan):\n%s", diff)
			}
		})
	}
}

// spec: DELTA-8, DELTA-11, ERR-6
func TestScanDelta(t *testing.T) {
	for name, m := range deltaFrames(t) {
		t.Run(name, func(t *testing.T) {
			frame := marshal(t, m)
			got, err := ScanDelta(frame)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fromDelta(m, len(frame)), got, equalResponses...); diff != "" {
				t.Errorf("scanned (-generated +scan):\n%s", diff)
			}
		})
	}
}

func TestScanKeepsNoCopies(t *testing.T) {
	frame := marshal(t, sotwFrames(t)["full"])
	r, err := ScanSotW(frame)
	if err != nil {
		t.Fatal(err)
	}
	payload := r.Resources[0].Payload
	frame[strings.Index(string(frame), "x")] = 'y'
	if string(payload) != "y" {
		t.Errorf("payload is %q: it is not a part of the frame", payload)
	}
}

// A frame is the same in parts, wherever they begin and end.
func TestParts(t *testing.T) {
	if testing.Short() {
		t.Skip("long: every cut of every message")
	}
	step := 1
	if race.Enabled {
		step = 11 // the race detector takes half a minute
	}
	for name, m := range sotwFrames(t) {
		frame := append(marshal(t, m), num(300, 1<<40)+group(40, num(1, 5))+str(41, "last")...)
		for size := 1; size <= len(frame); size += step {
			checkSotW(t, name, frame, size)
		}
	}
	for name, m := range deltaFrames(t) {
		frame := append(marshal(t, m), num(300, 1<<40)+group(40, num(1, 5))+str(41, "last")...)
		for size := 1; size <= len(frame); size += step {
			checkDelta(t, name, frame, size)
		}
	}
}

// A frame cut anywhere is refused, or is what the generated code makes of it.
// spec: STREAM-11
func TestTruncation(t *testing.T) {
	for name, m := range sotwFrames(t) {
		frame := marshal(t, m)
		for n := range frame {
			checkSotW(t, name, frame[:n:n], 1+n%31)
		}
	}
	for name, m := range deltaFrames(t) {
		frame := marshal(t, m)
		for n := range frame {
			checkDelta(t, name, frame[:n:n], 1+n%31)
		}
	}
}

// str, num and msg build fields by hand, in orders and forms that no encoder writes.
func str(n protowire.Number, s string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), s))
}

func num(n protowire.Number, v uint64) string {
	return string(protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v))
}

func group(n protowire.Number, inner string) string {
	b := protowire.AppendTag(nil, n, protowire.StartGroupType)
	b = append(b, inner...)
	return string(protowire.AppendTag(b, n, protowire.EndGroupType))
}

func body(value string) string { return str(2, str(2, value)+str(1, fooURL)) }

func TestOddEntries(t *testing.T) {
	tests := []struct {
		name  string
		entry string // of a DeltaDiscoveryResponse
		want  Resource
		fault string
	}{
		{name: "name last", entry: body("x") + str(3, "a"), want: Resource{Name: []byte("a"), TypeURL: []byte(fooURL), Payload: []byte("x"), HasBody: true}},
		{name: "last name counts", entry: str(3, "a") + str(3, "b"), want: Resource{Name: []byte("b")}},
		{name: "last body counts", entry: body("x") + body("y") + str(3, "a"), want: Resource{Name: []byte("a"), TypeURL: []byte(fooURL), Payload: []byte("y"), HasBody: true}},
		{name: "both names", entry: str(8, str(1, "b")) + str(3, "a"), want: Resource{Name: []byte("a")}},
		{name: "both names, the other order", entry: str(3, "a") + str(8, str(1, "b")), want: Resource{Name: []byte("a")}},
		{name: "an empty name after a resource_name", entry: str(8, str(1, "b")) + str(3, ""), want: Resource{Name: []byte("b")}},
		{name: "said of the cache", entry: str(7, num(1, 1)) + str(3, "a"), want: Resource{Name: []byte("a"), Attributes: &Attributes{DoNotCache: true}}},
		{name: "taken back of the cache", entry: str(7, num(1, 1)+num(1, 0)+num(2, 7)) + str(3, "a"), want: Resource{Name: []byte("a"), Attributes: &Attributes{}}},
		{name: "nothing said", entry: str(7, num(1, 0)) + str(9, "") + str(3, "a"), want: Resource{Name: []byte("a")}},
		{name: "a word on the cache of another wire type", entry: str(3, "a") + str(7, str(1, "x")), want: Resource{Name: []byte("a")}, fault: "not a Resource: field 7: field 1: a field has the wrong wire type"},
		{name: "cache control of another wire type", entry: str(3, "a") + num(7, 1), want: Resource{Name: []byte("a")}, fault: "not a Resource: field 7: a field has the wrong wire type"},
		{name: "metadata of another wire type", entry: str(3, "a") + num(9, 1), want: Resource{Name: []byte("a")}, fault: "not a Resource: field 9: a field has the wrong wire type"},
		{name: "a group", entry: group(77, str(1, "q")+group(5, "")) + str(3, "a"), want: Resource{Name: []byte("a")}},
		{name: "unknown fields", entry: num(99, 1<<63) + str(3, "a") + str(98, "\xff"), want: Resource{Name: []byte("a")}},
		{name: "long varints", entry: "\x9a\x80\x80\x00\x81\x80\x00a", want: Resource{Name: []byte("a")}},
		{name: "an Any that does not parse", entry: str(2, "\x0a\x09") + str(3, "a"), want: Resource{Name: []byte("a"), HasBody: true}, fault: "not an Any: the bytes end inside a field"},
		{name: "a type URL that is no text", entry: str(3, "a") + str(2, str(1, "\xff")), want: Resource{Name: []byte("a"), HasBody: true}, fault: "not an Any: field 1: a string is not valid UTF-8"},
		{name: "a body of another wire type", entry: str(3, "a") + num(2, 1), want: Resource{Name: []byte("a")}, fault: "not a Resource: field 2: a field has the wrong wire type"},
		{name: "a name that is no text", entry: str(3, "\xc3"), fault: "not a Resource: field 3: a string is not valid UTF-8"},
		{name: "a name of another wire type", entry: num(3, 4), fault: "not a Resource: field 3: a field has the wrong wire type"},
		{name: "an alias that is no text", entry: str(3, "a") + str(4, "\xff"), want: Resource{Name: []byte("a")}, fault: "not a Resource: field 4: a string is not valid UTF-8"},
		{name: "ends inside a field", entry: str(3, "a") + "\x12\x05", want: Resource{Name: []byte("a")}, fault: "not a Resource: the bytes end inside a field"},
		{name: "the end of no group", entry: str(3, "a") + "\x0c", want: Resource{Name: []byte("a")}, fault: "not a Resource: the bytes end inside a field"},
		{name: "constraints of an unknown kind", entry: str(8, str(1, "a")+str(2, str(9, "x"))), want: Resource{Name: []byte("a")}, fault: "not a Resource: field 9: a constraint of an unknown kind"},
		{name: "a constraint without a kind", entry: str(8, str(1, "a")+str(2, str(1, str(1, "env")))), want: Resource{Name: []byte("a")}, fault: "not a Resource: field 1: a constraint of an unknown kind"},
		{name: "constraints of another wire type", entry: str(8, str(1, "a")+num(2, 1)), want: Resource{Name: []byte("a")}, fault: "not a Resource: field 8: field 2: a field has the wrong wire type"},
		{name: "field zero", entry: str(3, "a") + "\x02\x00", want: Resource{Name: []byte("a")}, fault: "not a Resource: the bytes end inside a field"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ScanDelta([]byte(str(2, tt.entry)))
			if err != nil {
				t.Fatalf("the frame is refused: %v", err)
			}
			got := r.Resources[0]
			text := ""
			if got.Fault != nil {
				text = got.Fault.Error()
			}
			if text != tt.fault {
				t.Errorf("fault %q, want %q", text, tt.fault)
			}
			got.Fault = nil
			if diff := cmp.Diff(tt.want, got, equalResponses...); diff != "" {
				t.Errorf("scanned (-want +got):\n%s", diff)
			}
			sotw, err := ScanSotW([]byte(str(2, str(1, WrapperURL)+str(2, tt.entry))))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r.Resources, sotw.Resources, equalResponses...); diff != "" {
				t.Errorf("a wrapper in state of the world is read otherwise (-delta +sotw):\n%s", diff)
			}
		})
	}
}

// What is wrong outside an entry makes the frame unreadable; within one it is the entry's
// own fault, so that the response can be answered.
// spec: STREAM-11
func TestBrokenFrames(t *testing.T) {
	tests := []struct{ name, sotw, delta string }{
		{name: "version of another wire type", sotw: num(1, 1), delta: num(1, 1)},
		{name: "version that is no text", sotw: str(1, "\xff"), delta: str(1, "\xff")},
		{name: "entry of another wire type", sotw: num(2, 1), delta: num(2, 1)},
		{name: "type URL that is no text", sotw: str(4, "\xff"), delta: str(4, "\xff")},
		{name: "nonce that is no text", sotw: str(5, "\xff"), delta: str(5, "\xff")},
		{name: "control plane that does not parse", sotw: str(6, "\xff"), delta: str(7, "\xff")},
		{name: "control plane of another wire type", sotw: num(6, 1), delta: num(7, 1)},
		{name: "error that does not parse", sotw: str(7, "\xff"), delta: str(9, "\xff")},
		{name: "error of another wire type", sotw: num(7, 1), delta: num(9, 1)},
		{name: "error's name is no text", sotw: str(7, str(1, str(1, "\xff"))), delta: str(9, str(1, str(1, "\xff")))},
		{name: "error's code is no number", sotw: str(7, str(2, str(1, "5"))), delta: str(9, str(2, str(1, "5")))},
		{name: "error's message is no text", sotw: str(7, str(2, str(2, "\xff"))), delta: str(9, str(2, str(2, "\xff")))},
		{name: "removed name is no text", sotw: "\xff", delta: str(6, "\xff")},
		{name: "removed name of another wire type", sotw: "\xff", delta: num(6, 1)},
		{name: "removed resource name does not parse", sotw: "\xff", delta: str(8, "\xff")},
		{name: "unfinished group", sotw: group(9, "")[:1], delta: group(19, "")[:1]},
		{name: "length beyond the end", sotw: "\x0a\x05a", delta: "\x0a\x05a"},
		{name: "varint without end", sotw: "\x18" + strings.Repeat("\xff", 11), delta: "\x18" + strings.Repeat("\xff", 11)},
	}
	for _, tt := range tests {
		if r, err := ScanSotW([]byte(tt.sotw)); err == nil || r != nil {
			t.Errorf("%s: ScanSotW gives %v, %v", tt.name, r, err)
		}
		if r, err := ScanDelta([]byte(tt.delta)); err == nil || r != nil {
			t.Errorf("%s: ScanDelta gives %v, %v", tt.name, r, err)
		}
	}
}

func TestRepeatedFields(t *testing.T) {
	frame := str(5, "n1") + str(1, "1") + str(4, "t1") + str(1, "2") + str(4, fooURL) + str(5, "n2") + num(3, 1) + group(40, "")
	for name, scan := range map[string]func(...[]byte) (*Response, error){"sotw": ScanSotW, "delta": ScanDelta} {
		r, err := scan([]byte(frame))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := &Response{Version: "2", TypeURL: fooURL, Nonce: "n2", Size: len(frame)}
		if diff := cmp.Diff(want, r, equalResponses...); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTTL(t *testing.T) {
	const bound = time.Duration(1<<32) * time.Second
	negative := func(v int64) uint64 { return uint64(v) }
	tests := []struct {
		name, ttl string
		want      time.Duration
	}{
		{"zero", "", 0},
		{"ordinary", num(1, 60) + num(2, 500), time.Minute + 500},
		{"nanos first", num(2, 500) + num(1, 60), time.Minute + 500},
		{"the last of each counts", num(1, 9) + num(2, 7) + num(1, 1) + num(2, 3), time.Second + 3},
		{"negative", num(1, negative(-3)) + num(2, negative(-5)), -3*time.Second - 5},
		{"the largest of the format", num(1, 315576000000) + num(2, 999999999), bound + 999999999},
		{"the smallest of the format", num(1, negative(-315576000000)), -bound},
		{"the largest number", num(1, 1<<63-1), bound},
		{"the smallest number", num(1, 1<<63), -bound},
		{"nanos beyond 32 bits", num(2, 1<<32+1), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ScanDelta([]byte(str(2, str(6, tt.ttl)+str(3, "a"))))
			if err != nil {
				t.Fatal(err)
			}
			got := r.Resources[0]
			if got.Fault != nil || !got.HasTTL || got.TTL != tt.want || string(got.Name) != "a" {
				t.Errorf("entry %+v, want TTL %v", got, tt.want)
			}
		})
	}
	for _, broken := range []string{str(6, str(1, "x")), str(6, "\xff"), num(6, 1)} {
		r, err := ScanDelta([]byte(str(2, str(3, "a")+broken)))
		if err != nil || r.Resources[0].Fault == nil {
			t.Errorf("TTL %x: %+v, %v; want a fault of the entry", broken, r, err)
		}
	}
}

func TestStringField(t *testing.T) {
	tests := []struct {
		name, msg, want string
		ok, bad         bool
	}{
		{name: "none", msg: str(2, "x") + num(3, 1)},
		{name: "no message", msg: ""},
		{name: "first", msg: str(1, "a") + str(2, "x"), want: "a", ok: true},
		{name: "last", msg: str(2, "x") + str(1, "a"), want: "a", ok: true},
		{name: "repeated", msg: str(1, "a") + str(1, "b"), want: "b", ok: true},
		{name: "empty", msg: str(1, ""), ok: true},
		{name: "not inside others", msg: str(2, str(1, "a"))},
		{name: "not inside groups", msg: group(2, str(1, "a"))},
		{name: "broken after it", msg: str(1, "a") + "\xff", bad: true},
		{name: "not text", msg: str(1, "\xff"), bad: true},
		{name: "a number", msg: num(1, 1), bad: true},
		{name: "a group", msg: group(1, ""), bad: true},
	}
	for _, tt := range tests {
		got, ok, err := StringField([]byte(tt.msg), 1)
		if (err != nil) != tt.bad || !tt.bad && (string(got) != tt.want || ok != tt.ok) {
			t.Errorf("%s: %q, %v, %v; want %q, %v, an error: %v", tt.name, got, ok, err, tt.want, tt.ok, tt.bad)
		}
	}
}
