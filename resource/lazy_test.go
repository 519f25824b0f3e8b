package resource_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// checked is a lazy type and what it is measured by.
type checked struct {
	lazy resource.AnyType
	new  func() proto.Message
}

func lazily[T proto.Message]() checked {
	var zero T
	return checked{
		resource.LazyOf(resource.Proto[T](resource.Options{})),
		func() proto.Message { return zero.ProtoReflect().New().Interface() },
	}
}

var lazyTypes = []checked{
	lazily[*clusterv3.Cluster](), lazily[*listenerv3.Listener](), lazily[*routev3.RouteConfiguration](),
	lazily[*endpointv3.ClusterLoadAssignment](),
}

// agrees says that a lazy type accepts what proto.Unmarshal accepts, under the same name.
func (c checked) agrees(t *testing.T, b []byte) {
	t.Helper()
	msg := c.new()
	want := proto.Unmarshal(b, msg)
	v, err := c.lazy.Decode(resource.Source{}, b)
	if (err == nil) != (want == nil) {
		t.Fatalf("%s: error %v, want %v, of %x", c.lazy.TypeURL(), err, want, b)
	}
	if err != nil {
		if !strings.HasSuffix(err.Error(), want.Error()) {
			t.Errorf("error %q, want %q", err, want)
		}
		return
	}
	first := msg.ProtoReflect().Descriptor().Fields().ByNumber(1)
	if name, _, err := wire.StringField(b, 1); first != nil && err == nil && first.Kind() == protoreflect.StringKind && string(name) != msg.ProtoReflect().Get(first).String() {
		t.Errorf("the name %q is read as %q", msg.ProtoReflect().Get(first), name)
	}
	if raw := v.(interface{ Raw() []byte }).Raw(); string(raw) != string(b) {
		t.Errorf("it holds %x, want %x", raw, b)
	}
}

// filled is a random message of a type, so that a walk meets every kind of field.
func filled(m protoreflect.Message, r *rand.Rand, depth int) protoreflect.Message {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if r.IntN(3) > 0 || depth == 0 && (fd.Message() != nil) {
			continue
		}
		switch {
		case fd.IsMap():
			entries := m.Mutable(fd).Map()
			for range r.IntN(3) {
				entries.Set(scalar(fd.MapKey(), r).MapKey(), valueOf(fd.MapValue(), entries.NewValue, r, depth))
			}
		case fd.IsList():
			list := m.Mutable(fd).List()
			for range r.IntN(3) {
				list.Append(valueOf(fd, list.NewElement, r, depth))
			}
		default:
			m.Set(fd, valueOf(fd, func() protoreflect.Value { return m.NewField(fd) }, r, depth))
		}
	}
	return m
}

func valueOf(fd protoreflect.FieldDescriptor, make func() protoreflect.Value, r *rand.Rand, depth int) protoreflect.Value {
	if fd.Message() == nil {
		return scalar(fd, r)
	}
	v := make()
	filled(v.Message(), r, depth-1)
	return v
}

func scalar(fd protoreflect.FieldDescriptor, r *rand.Rand) protoreflect.Value {
	n := r.Int64() >> r.IntN(64)
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n&1 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n & 7))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(binary.AppendVarint(nil, n))
	default:
		return protoreflect.ValueOfString(strings.Repeat("ä", int(n&7)))
	}
}

// mutated changes some bytes: their values, or their number.
func mutated(b []byte, r *rand.Rand) []byte {
	b = append([]byte(nil), b...)
	for range r.IntN(3) {
		if len(b) == 0 {
			break
		}
		switch at := r.IntN(len(b)); r.IntN(4) {
		case 0:
			b[at] = byte(r.Uint32())
		case 1:
			b[at] ^= 1 << r.IntN(8)
		case 2:
			b = append(b[:at], b[at+1:]...)
		case 3:
			b = append(b[:at+1], b[at:]...)
		}
	}
	return b
}

// A lazy type accepts what protobuf accepts: whole messages, and those with a few bytes changed.
// spec: U-19
func TestLazyAgrees(t *testing.T) {
	if testing.Short() {
		t.Skip("long: many changed messages")
	}
	for i, c := range lazyTypes {
		r := rand.New(rand.NewPCG(18, uint64(i)))
		refused := 0
		for range 4000 {
			b, err := proto.Marshal(filled(c.new().ProtoReflect(), r, 5).Interface())
			if err != nil {
				t.Fatal(err)
			}
			c.agrees(t, b)
			b = mutated(b, r)
			c.agrees(t, b)
			if proto.Unmarshal(b, c.new()) != nil {
				refused++
			}
		}
		if refused < 100 || refused > 3900 {
			t.Errorf("%s: %d of 4000 are refused, so little is proved", c.lazy.TypeURL(), refused)
		}
	}
}

func FuzzLazy(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for i, c := range lazyTypes {
		for range 8 {
			b, err := proto.Marshal(filled(c.new().ProtoReflect(), r, 3).Interface())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(byte(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) { lazyTypes[int(which)%len(lazyTypes)].agrees(t, b) })
}

// nested is a message that holds itself so many times.
func nested(depth int, field protowire.Number) (b []byte) {
	sizes := make([]int, depth)
	size := 0
	for i := range depth {
		sizes[i] = size
		size = protowire.SizeTag(field) + protowire.SizeBytes(size)
	}
	for i := depth - 1; i >= 0; i-- {
		b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(sizes[i]))
	}
	return b
}

// What a walk by itself cannot be sure of is left to protobuf: depth, groups, extensions and
// fields that have to be there.
func TestLazyUnsure(t *testing.T) {
	list := lazily[*structpb.Value]() // a value with a list of values, two levels each
	deep := func(n int) (b []byte) {
		for range n {
			inner := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
			b = protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), inner)
		}
		return b
	}
	for _, n := range []int{1, 49, 50, 51, 300} {
		list.agrees(t, deep(n))
	}
	proto2 := lazily[*descriptorpb.DescriptorProto]()
	for _, n := range []int{99, 100, 101, 9998, 9999, 10_000} {
		proto2.agrees(t, nested(n, 3))
	}
	options := lazily[*descriptorpb.UninterpretedOption]()
	part := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 1))
	options.agrees(t, part) // a NamePart without its name
	options.agrees(t, protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), []byte("\xff")))
	ranges := lazily[*descriptorpb.FieldOptions]()
	ranges.agrees(t, protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1))
	for _, c := range lazyTypes {
		group := protowire.AppendTag(protowire.AppendTag(nil, 18_999, protowire.StartGroupType), 18_999, protowire.EndGroupType)
		c.agrees(t, group)
		c.agrees(t, group[:len(group)-1])
		c.agrees(t, append(group, group[3:]...))
		c.agrees(t, protowire.AppendTag(nil, 1<<29, protowire.VarintType))
		c.agrees(t, []byte{0})
	}
}

// A lazy value is decoded once, by whoever reads it first, with all that its type demands; the
// faults that are not protobuf's come then.
// spec: U-19
func TestLazyValue(t *testing.T) {
	decoded := 0
	typ := resource.LazyOf(resource.With(cds.Type, func(c *clusterv3.Cluster) error {
		if decoded++; c.GetName() == "panic" {
			panic("secret")
		}
		return nil
	}))
	if !typ.FullState() || typ.NameField() != 1 || typ.TypeURL() != cds.Type.TypeURL() {
		t.Error("a lazy type has other options than its type")
	}
	read := func(name string) (*clusterv3.Cluster, error) {
		t.Helper()
		v, err := typ.Decode(resource.Source{}, marshal(t, &clusterv3.Cluster{
			Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		}))
		if err != nil {
			t.Fatalf("%s is refused: %v", name, err)
		}
		lazy := v.(*resource.Lazy[*clusterv3.Cluster])
		var all sync.WaitGroup
		first, err := lazy.Value()
		for range 4 {
			all.Go(func() {
				if v, _ := lazy.Value(); v != first {
					t.Error("two values of one resource")
				}
			})
		}
		all.Wait()
		return first, err
	}
	if c, err := read("a"); err != nil || c.GetName() != "a" || decoded != 1 {
		t.Errorf("%v, %v after %d decodings", c, err, decoded)
	}
	if _, err := read("xdstp://a/envoy.config.cluster.v3.Cluster/a"); err == nil || !strings.Contains(err.Error(), "service_name") {
		t.Errorf("error %v, want that of the type", err)
	}
	if _, err := read("panic"); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "the decoder panicked") {
		t.Errorf("error %v of a decoder that panics", err)
	}
}

// large is the largest of many random messages.
func (c checked) large(t testing.TB) (largest []byte) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		b, err := proto.Marshal(filled(c.new().ProtoReflect(), r, 6).Interface())
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > len(largest) {
			largest = b
		}
	}
	return largest
}

// A lazy value prints nothing of what it holds, which may be a secret, decoded or not.
//
// spec: H-3
func TestLazyPrints(t *testing.T) {
	const secret = "MARK3R"
	v, err := resource.LazyOf(cds.Type).Decode(resource.Source{}, marshal(t, &clusterv3.Cluster{Name: secret}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		asJSON, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{fmt.Sprint(v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), fmt.Sprintf("%s %x", v, v), string(asJSON)} {
			if strings.Contains(text, secret) || strings.Contains(text, hex.EncodeToString([]byte(secret))) || !strings.Contains(text, "lazy *clusterv3.Cluster of") {
				t.Errorf("it prints as %s", text)
			}
		}
		if _, err := resource.Decoded(v); err != nil {
			t.Fatal(err)
		}
	}
	if text := fmt.Sprint((*resource.Lazy[*clusterv3.Cluster])(nil)); text != "no lazy resource" {
		t.Error(text)
	}
}

// The walk itself allocates nothing: what is allocated is the value.
func TestLazyAllocations(t *testing.T) {
	for _, c := range lazyTypes {
		b := c.large(t)
		if n := testing.AllocsPerRun(100, func() { _, _ = c.lazy.Decode(resource.Source{}, b) }); n > 1 {
			t.Errorf("%s: %v allocations for %d bytes", c.lazy.TypeURL(), n, len(b))
		}
	}
}

func BenchmarkLazy(b *testing.B) {
	for _, c := range lazyTypes {
		raw := c.large(b)
		b.Run(c.lazy.TypeURL()[len(resource.TypePrefix):], func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.lazy.Decode(resource.Source{}, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
