package wire

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

func detail(s *Status) *status.Status {
	if s == nil {
		return nil
	}
	return &status.Status{Code: s.Code, Message: s.Message}
}

var statuses = map[string]*Status{
	"none": nil, "empty": {}, "usual": {3, "no such thing"}, "negative": {-7, "é"}, "text only": {0, "x"},
}

// spec: ACK-2, ACK-3, ACK-4
func TestAppendSotW(t *testing.T) {
	node := &corev3.Node{Id: "n", Cluster: "c"}
	for name, s := range statuses {
		b := AppendSotW([]byte(str(40, "before")), fooURL, "7", "nonce", marshal(t, node), s)
		for _, n := range []string{"a", "", "b"} {
			b = AppendName(b, n, nil)
		}
		if !bytes.HasPrefix(b, []byte(str(40, "before"))) {
			t.Fatalf("%s: what stood there is gone", name)
		}
		want := &discoveryv3.DiscoveryRequest{
			VersionInfo: "7", Node: node, ResourceNames: []string{"a", "", "b"}, TypeUrl: fooURL,
			ResponseNonce: "nonce", ErrorDetail: detail(s),
		}
		same(t, name, b[len(str(40, "before")):], want, &discoveryv3.DiscoveryRequest{})
	}
	if b := AppendSotW(nil, "", "", "", nil, nil); len(b) != 0 {
		t.Errorf("an empty request is %x", b)
	}
}

// A request is cut around its type URL, wherever that stands; what breaks before it, or has
// none, is left whole.
func TestCutTypeURL(t *testing.T) {
	const before, after = "\x1a\x01a", "\x1a\x01b"
	for _, delta := range []bool{false, true} {
		field := string(AppendTypeURL(nil, fooURL, delta))
		for _, tt := range []struct{ msg, before, url, after string }{
			{before + field + after, before, fooURL, after},
			{field, "", fooURL, ""},
			{"", "", "", ""},
			{before + after, before + after, "", ""},
			{before + "\x1a\x09b" + field, before + "\x1a\x09b" + field, "", ""},
			{before + field[:4], before + field[:4], "", ""},
			{"\x20\x01\x10\x01" + field, "\x20\x01\x10\x01", fooURL, ""}, // varints of its number
		} {
			b, url, a := CutTypeURL([]byte(tt.msg), delta)
			if string(b) != tt.before || url != tt.url || string(a) != tt.after {
				t.Errorf("%q was cut into %q, %q and %q", tt.msg, b, url, a)
			}
		}
	}
	if b := AppendTypeURL(nil, "", false); len(b) != 0 {
		t.Errorf("an empty URL is %x", b)
	}
}

// What was appended name by name is cut off name by name.
func TestCutName(t *testing.T) {
	names := []string{"a", "", "b", "", "c", strings.Repeat("n", 127), strings.Repeat("n", 128), strings.Repeat("n", 1<<20), "z"}
	var b []byte
	for i, name := range names {
		size := len(b)
		p := []*Params{nil, NewParams(map[string]string{"env": "prod"})}[i/2%2]
		if b = AppendName(b, name, p); len(b)-size != SizeName(name, p) {
			t.Errorf("a name of %d bytes takes %d, SizeName says %d", len(name), len(b)-size, SizeName(name, p))
		}
	}
	for _, want := range names {
		var got []byte
		if got, b = CutName(b); string(got) != want {
			t.Fatalf("name of %d bytes, want the %d bytes that were appended", len(got), len(want))
		}
	}
	if len(b) != 0 {
		t.Errorf("%d bytes are left", len(b))
	}
}

// spec: DELTA-1, ACK-8
func TestAppendDelta(t *testing.T) {
	node := &corev3.Node{Id: "n"}
	for name, s := range statuses {
		b := AppendDelta(nil, fooURL, "nonce", marshal(t, node), s)
		b = AppendSubscribe(b, "a", nil)
		b = AppendUnsubscribe(b, "gone", nil)
		b = AppendInitialVersion(b, "a", "1")
		b = AppendSubscribe(b, "b", nil)
		b = AppendUnsubscribe(b, "", nil)
		b = AppendInitialVersion(b, "", "")
		b = AppendInitialVersion(b, string(bytes.Repeat([]byte("n"), 300)), "long")
		want := &discoveryv3.DeltaDiscoveryRequest{
			Node: node, TypeUrl: fooURL, ResponseNonce: "nonce", ErrorDetail: detail(s),
			ResourceNamesSubscribe: []string{"a", "b"}, ResourceNamesUnsubscribe: []string{"gone", ""},
			InitialResourceVersions: map[string]string{"a": "1", "": "", string(bytes.Repeat([]byte("n"), 300)): "long"},
		}
		same(t, name, b, want, &discoveryv3.DeltaDiscoveryRequest{})
	}
	if b := AppendDelta(nil, "", "", nil, nil); len(b) != 0 {
		t.Errorf("an empty request is %x", b)
	}
}

func same(t *testing.T, name string, b []byte, want, got proto.Message) {
	t.Helper()
	if err := proto.Unmarshal(b, got); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// FuzzRequest: what is appended is read back by the generated code.
func FuzzRequest(f *testing.F) {
	f.Add(fooURL, "7", "n1", "a", "b", int32(3), "no", true)
	f.Add("", "", "", "", "", int32(0), "", false)
	f.Add(fooURL, "", "é\x00", "*", "", int32(-1), "\n", true)
	f.Fuzz(func(t *testing.T, url, version, nonce, name, other string, code int32, message string, bad bool) {
		for _, s := range []string{url, version, nonce, name, other, message} {
			if !utf8.ValidString(s) {
				t.Skip("the machine takes no such text: names are checked before it, responses when they are scanned")
			}
		}
		var s *Status
		if bad {
			s = &Status{code, message}
		}
		params := map[string]string{"": nonce}
		params[name] = version
		b := AppendName(AppendName(AppendSotW(nil, url, version, nonce, nil, s), name, nil), other, NewParams(params))
		same(t, "state of the world", b, &discoveryv3.DiscoveryRequest{
			VersionInfo: version, TypeUrl: url, ResponseNonce: nonce, ErrorDetail: detail(s), ResourceNames: []string{name},
			ResourceLocators: []*discoveryv3.ResourceLocator{{Name: other, DynamicParameters: params}},
		}, &discoveryv3.DiscoveryRequest{})
		b = AppendDelta(nil, url, nonce, nil, s)
		b = AppendInitialVersion(AppendUnsubscribe(AppendSubscribe(b, name, nil), other, NewParams(params)), name, version)
		same(t, "delta", b, &discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: url, ResponseNonce: nonce, ErrorDetail: detail(s), ResourceNamesSubscribe: []string{name},
			ResourceLocatorsUnsubscribe: []*discoveryv3.ResourceLocator{{Name: other, DynamicParameters: params}},
			InitialResourceVersions:     map[string]string{name: version},
		}, &discoveryv3.DeltaDiscoveryRequest{})
	})
}
