package apiv2

import (
	"bytes"
	"slices"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/testutil/script"
)

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mapAny maps the type URL of an entry and, where it is a wrapper, of what is wrapped.
func mapAny(t testing.TB, a *anypb.Any, to func(string) string) {
	t.Helper()
	var w discoveryv3.Resource
	if a.TypeUrl != wire.WrapperURL || proto.Unmarshal(a.Value, &w) != nil {
		a.TypeUrl = to(a.TypeUrl)
		return
	}
	if w.Resource != nil {
		w.Resource.TypeUrl = to(w.Resource.TypeUrl)
	}
	a.Value = marshal(t, &w)
}

// sotwFrame encodes a response anew, with its type URLs mapped by the generated code.
func sotwFrame(t testing.TB, m *discoveryv3.DiscoveryResponse, to func(string) string) []byte {
	t.Helper()
	m = proto.CloneOf(m)
	m.TypeUrl = to(m.TypeUrl)
	for _, a := range m.Resources {
		mapAny(t, a, to)
	}
	return marshal(t, m)
}

func deltaFrame(t testing.TB, m *discoveryv3.DeltaDiscoveryResponse, to func(string) string) []byte {
	t.Helper()
	m = proto.CloneOf(m)
	m.TypeUrl = to(m.TypeUrl)
	for _, r := range m.Resources {
		if r.Resource != nil {
			r.Resource.TypeUrl = to(r.Resource.TypeUrl)
		}
	}
	return marshal(t, m)
}

// compare: what is scanned and then mapped is what is mapped and then scanned.
func compare(t *testing.T, scan func(...[]byte) (*wire.Response, error), old, mapped []byte) {
	t.Helper()
	got, err := scan(old)
	want, wantErr := scan(mapped)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("error %v, and of version 3 %v", err, wantErr)
	}
	if err != nil {
		return
	}
	Response(got)
	got.Size = want.Size
	for i, e := range want.Resources {
		if e.Fault != nil { // of a broken entry the generated code maps nothing
			want.Resources[i].TypeURL, got.Resources[i].TypeURL = nil, nil
		}
	}
	same := cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })
	if diff := cmp.Diff(want, got, same, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(wire.Response{})); diff != "" {
		t.Fatalf("(-version 3 +mapped):\n%s", diff)
	}
}

// FuzzResponse: a mapped response is the one that a server of version 3 would have sent.
//
// spec: V2-1
func FuzzResponse(f *testing.F) {
	f.Add(golden(f, "sotw-response"))
	f.Add(golden(f, "delta-response"))
	frames, err := script.Responses("../../testdata/scripts")
	if err != nil || len(frames) < 1000 {
		f.Fatalf("%d responses of scripts, %v: the corpus is lost", len(frames), err)
	}
	switch { // all take some seconds, and twenty with the race detector
	case testing.Short():
		frames = frames[:30]
	case race.Enabled:
		frames = frames[:len(frames)/4]
	}
	for _, frame := range frames { // of either variant: what can be read as both is a seed of both
		var sotw discoveryv3.DiscoveryResponse
		if proto.Unmarshal(frame, &sotw) == nil {
			f.Add(sotwFrame(f, &sotw, ToV2))
		}
		var delta discoveryv3.DeltaDiscoveryResponse
		if proto.Unmarshal(frame, &delta) == nil {
			f.Add(deltaFrame(f, &delta, ToV2))
		}
	}
	inner := marshal(f, &discoveryv3.Resource{Name: "a", Resource: &anypb.Any{TypeUrl: clusterV2, Value: []byte("\x0a\x01a")}})
	twice := marshal(f, &discoveryv3.Resource{Name: "a", Resource: &anypb.Any{TypeUrl: wire.WrapperURL, Value: inner}})
	for _, wrapper := range [][]byte{inner, twice, []byte("\x12\xff")} {
		f.Add(marshal(f, &discoveryv3.DiscoveryResponse{
			TypeUrl: clusterV2, Resources: []*anypb.Any{{TypeUrl: wire.WrapperURL, Value: wrapper}, {TypeUrl: clusterV2}},
		}))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		as := func(url string) string { return url }
		var sotw discoveryv3.DiscoveryResponse
		if proto.Unmarshal(frame, &sotw) == nil {
			compare(t, wire.ScanSotW, sotwFrame(t, &sotw, as), sotwFrame(t, &sotw, ToV3))
		}
		var delta discoveryv3.DeltaDiscoveryResponse
		if proto.Unmarshal(frame, &delta) == nil {
			compare(t, wire.ScanDelta, deltaFrame(t, &delta, as), deltaFrame(t, &delta, ToV3))
		}
	})
}

// FuzzRequest: a mapped request is the one that is composed with the other type URL, and
// no bytes in place of its first part do harm.
//
// spec: V2-2
func FuzzRequest(f *testing.F) {
	f.Add(clusterV3, "1", "n", []byte("\x0a\x01i"), "bad", []byte("\x0a"))
	f.Add("own", "", "", []byte(nil), "", []byte("\x22\x03a"))
	f.Fuzz(func(t *testing.T, url, version, nonce string, node []byte, text string, head []byte) {
		detail := &wire.Status{Code: 3, Message: text}
		names := wire.AppendName(nil, text, nil)
		sotw := func(url string) []byte { return wire.AppendSotW(nil, url, version, nonce, node, detail) }
		if got := bytes.Join(Request([][]byte{sotw(url), names}, false), nil); !bytes.Equal(got, slices.Concat(sotw(ToV2(url)), names)) {
			t.Errorf("state of the world: %x", got)
		}
		delta := func(url string) []byte { return wire.AppendDelta(nil, url, nonce, node, detail) }
		if got := bytes.Join(Request([][]byte{delta(url), names}, true), nil); !bytes.Equal(got, slices.Concat(delta(ToV2(url)), names)) {
			t.Errorf("delta: %x", got)
		}
		for _, delta := range []bool{false, true} {
			before := slices.Clone(head)
			Request([][]byte{head}, delta)
			if !bytes.Equal(before, head) {
				t.Errorf("the request was modified")
			}
		}
	})
}
