package wire

import (
	"slices"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/testutil/script"
)

// fromSotW is what a scan should find, made from the generated message. ok is false where
// a wrapper does not parse: the generated code does not look into an Any, the scan does.
func fromSotW(m *discoveryv3.DiscoveryResponse, size int) (r *Response, ok bool) {
	r = &Response{
		Version: m.VersionInfo, TypeURL: m.TypeUrl, Nonce: m.Nonce, Size: size,
		ControlPlane: m.GetControlPlane().GetIdentifier(), Errors: fromErrors(m.ResourceErrors),
	}
	for _, a := range m.Resources {
		if a.TypeUrl != WrapperURL {
			r.Resources = append(r.Resources, Resource{TypeURL: []byte(a.TypeUrl), Payload: a.Value, HasBody: true})
			continue
		}
		var w discoveryv3.Resource
		if proto.Unmarshal(a.Value, &w) != nil {
			return nil, false
		}
		r.add(&w)
	}
	return r, true
}

func fromDelta(m *discoveryv3.DeltaDiscoveryResponse, size int) *Response {
	r := &Response{
		Version: m.SystemVersionInfo, TypeURL: m.TypeUrl, Nonce: m.Nonce, Size: size,
		ControlPlane: m.GetControlPlane().GetIdentifier(), Errors: fromErrors(m.ResourceErrors),
	}
	for _, w := range m.Resources {
		r.add(w)
	}
	for _, name := range m.RemovedResources {
		r.Removed = append(r.Removed, []byte(name))
	}
	for _, name := range m.RemovedResourceNames {
		r.RemovedNames = append(r.RemovedNames, fromName(name))
	}
	return r
}

func fromName(n *discoveryv3.ResourceName) ResourceName {
	return ResourceName{Name: []byte(n.GetName()), Constraints: constraintsOf(n)}
}

func (r *Response) add(w *discoveryv3.Resource) {
	e := fromResource(w)
	if c := w.GetResourceName().GetDynamicParameterConstraints(); c != nil {
		if _, e.Fault = evaluate(c, nil, 0); e.Fault == nil {
			r.Constraints = append(r.Constraints, constraintsOf(w.GetResourceName()))
			e.Variant = int32(len(r.Constraints))
		}
	}
	r.Resources = append(r.Resources, e)
}

func fromErrors(errs []*discoveryv3.ResourceError) (rs []ResourceError) {
	for _, e := range errs {
		rs = append(rs, ResourceError{
			ResourceName: fromName(e.GetResourceName()), Code: e.GetErrorDetail().GetCode(), Message: e.GetErrorDetail().GetMessage(),
		})
	}
	return rs
}

func fromAttributes(w *discoveryv3.Resource) *Attributes {
	a := &Attributes{DoNotCache: w.GetCacheControl().GetDoNotCache()}
	for _, name := range w.Aliases {
		a.Aliases = append(a.Aliases, []byte(name))
	}
	a.Metadata, _ = proto.MarshalOptions{Deterministic: true}.Marshal(w.Metadata)
	if len(a.Aliases) == 0 && !a.DoNotCache && len(a.Metadata) == 0 {
		return nil
	}
	return a
}

func fromResource(w *discoveryv3.Resource) Resource {
	name := w.Name
	if name == "" {
		name = w.GetResourceName().GetName()
	}
	r := Resource{Name: []byte(name), Version: []byte(w.Version), Attributes: fromAttributes(w)}
	if w.Resource != nil {
		r.HasBody, r.TypeURL, r.Payload = true, []byte(w.Resource.TypeUrl), w.Resource.Value
	}
	if w.Ttl != nil {
		const most = 1 << 32
		r.HasTTL = true
		r.TTL = time.Duration(max(-most, min(w.Ttl.Seconds, most)))*time.Second + time.Duration(w.Ttl.Nanos)
	}
	return r
}

// irregular says that a message the generated code accepts is one where the scan differs
// on purpose, which no encoder writes:
//
//   - A known field of another wire type. The generated code takes it for an unknown field;
//     the scan refuses the frame or the entry.
//   - A singular message given more than once, or several of a oneof. The generated code
//     merges them, or forgets all but the last; the scan looks at each.
func irregular(b []byte, md protoreflect.MessageDescriptor) bool {
	seen, chosen := map[protowire.Number]bool{}, map[protoreflect.Name]bool{}
	wrapper := false
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeField(b)
		if size < 0 {
			return true
		}
		_, _, tag := protowire.ConsumeTag(b)
		value := b[tag:size]
		b = b[size:]
		fd := md.Fields().ByNumber(n)
		if fd == nil {
			continue
		}
		if typ != wireType(fd.Kind()) || fd.Message() != nil && !fd.IsList() && !fd.IsMap() && seen[n] {
			return true
		}
		if of := fd.ContainingOneof(); of != nil {
			if chosen[of.Name()] {
				return true
			}
			chosen[of.Name()] = true
		}
		seen[n] = true
		if typ != protowire.BytesType {
			continue
		}
		inner, _ := protowire.ConsumeBytes(value)
		if fd.Message() != nil && irregular(inner, fd.Message()) {
			return true
		}
		if md.FullName() == "google.protobuf.Any" {
			wrapper = wrapper || n == 1 && string(inner) == WrapperURL
			if n == 2 && wrapper && irregular(inner, (&discoveryv3.Resource{}).ProtoReflect().Descriptor()) {
				return true
			}
		}
	}
	return false
}

func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.DoubleKind:
		return protowire.Fixed64Type
	}
	return protowire.VarintType
}

// scanned is what a scan says of a frame, whole or in parts of a size.
func scanned(t *testing.T, name string, scan func(...[]byte) (*Response, error), frame []byte, size int) (*Response, error) {
	t.Helper()
	got, err := scan(frame)
	if (got == nil) != (err != nil) {
		t.Fatalf("%s: %v together with error %v", name, got, err)
	}
	again, err2 := scan(slices.Collect(slices.Chunk(frame, size))...)
	if diff := cmp.Diff(got, again, equalResponses...); diff != "" || (err == nil) != (err2 == nil) {
		t.Fatalf("%s in parts of %d: %v (-whole +parts):\n%s", name, size, err2, diff)
	}
	return got, err
}

// checkSotW compares the scan with the generated code, wherever that accepts a frame.
func checkSotW(t *testing.T, name string, frame []byte, size int) {
	t.Helper()
	got, err := scanned(t, name, ScanSotW, frame, size)
	var m discoveryv3.DiscoveryResponse
	if proto.Unmarshal(frame, &m) != nil || irregular(frame, m.ProtoReflect().Descriptor()) {
		return // the scan may accept more: a broken entry is no broken frame
	}
	if want, ok := fromSotW(&m, len(frame)); ok {
		compare(t, name, want, got, err)
	}
}

func checkDelta(t *testing.T, name string, frame []byte, size int) {
	t.Helper()
	got, err := scanned(t, name, ScanDelta, frame, size)
	var m discoveryv3.DeltaDiscoveryResponse
	if proto.Unmarshal(frame, &m) != nil || irregular(frame, m.ProtoReflect().Descriptor()) {
		return
	}
	compare(t, name, fromDelta(&m, len(frame)), got, err)
}

func compare(t *testing.T, name string, want, got *Response, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: refused, though the generated code reads it: %v", name, err)
	}
	if diff := cmp.Diff(want, got, equalResponses...); diff != "" {
		t.Fatalf("%s (-generated +scan):\n%s", name, diff)
	}
}

// FuzzScan: no bytes let a scan panic, it agrees with the generated code, and it finds the
// same whether a frame comes whole or in parts.
func FuzzScan(f *testing.F) {
	frames, err := script.Responses("../../testdata/scripts")
	if err != nil || len(frames) < 1000 {
		f.Fatalf("%d responses of scripts, %v: the corpus is lost", len(frames), err)
	}
	switch { // all take ten seconds, and more with the race detector
	case testing.Short():
		frames = frames[:30]
	case race.Enabled:
		frames = frames[:100]
	}
	for _, frame := range frames {
		f.Add(frame, byte(7))
	}
	for _, m := range sotwFrames(f) {
		f.Add(marshal(f, m), byte(7))
	}
	for _, m := range deltaFrames(f) {
		f.Add(marshal(f, m), byte(7))
	}
	f.Add([]byte(str(2, body("x")+str(3, "a")+group(77, ""))+str(8, str(1, "gone"))), byte(0))
	f.Add([]byte(str(2, str(1, WrapperURL)+str(2, str(6, num(1, 1<<63))))), byte(2))
	f.Add([]byte(str(2, body("x")+str(8, str(1, "a")+str(2, str(9, "unknown"))))), byte(3))
	f.Fuzz(func(t *testing.T, frame []byte, part byte) {
		size := 1 + int(part)
		checkSotW(t, "state of the world", frame, size)
		checkDelta(t, "delta", frame, size)
		value, ok, err := StringField(frame, 1)
		if err == nil && !ok && value != nil {
			t.Errorf("StringField found %q and says that it did not", value)
		}
	})
}
