package grpcrules

import (
	"math/rand/v2"
	"slices"
	"strings"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// mutator changes messages at random, deep inside too.
type mutator struct {
	*rand.Rand
	pool []*anypb.Any // what an Any may become
}

// mutate changes a few fields of a copy of a message.
func (r mutator) mutate(m proto.Message) proto.Message {
	c := proto.Clone(m)
	for range 1 + r.IntN(3) {
		r.once(c.ProtoReflect(), 0)
	}
	return c
}

// maxDepth is how deep below a message a change may be.
const maxDepth = 12

// once changes a field of a message, or of one below it.
func (r mutator) once(m protoreflect.Message, depth int) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		r.content(a, depth)
		return
	}
	var below []protoreflect.Message
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				below = append(below, v.Message())
				return true
			})
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				below = append(below, v.List().Get(i).Message())
			}
		default:
			below = append(below, v.Message())
		}
		return true
	})
	if len(below) > 0 && depth < maxDepth && r.IntN(5) > 0 {
		r.once(below[r.IntN(len(below))], depth+1)
		return
	}
	if fields := m.Descriptor().Fields(); fields.Len() > 0 {
		r.field(m, fields.Get(r.IntN(fields.Len())), depth)
	} else if r.IntN(4) == 0 { // a field of a later version
		m.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1))
	}
}

// content changes what an Any holds.
func (r mutator) content(a *anypb.Any, depth int) {
	inner, err := a.UnmarshalNew()
	switch n := r.IntN(20); {
	case n == 0:
		a.TypeUrl, a.Value = "type.googleapis.com/acme.Unknown", []byte("x")
	case n == 1:
		a.Value = []byte{0xff}
	case n == 2 && len(a.Value) > 0: // which may still be a message
		a.Value = slices.Clone(a.Value)
		a.Value[r.IntN(len(a.Value))] ^= 1 << r.IntN(8)
	case n == 3:
		_, name, _ := strings.Cut(a.TypeUrl, "/")
		a.TypeUrl = []string{name, "/" + name, "other.example/" + name, "type.googleapis.com/a/" + name, strings.ToUpper(a.TypeUrl)}[r.IntN(5)]
	case n == 4 && err == nil: // as JSON
		a.TypeUrl, a.Value = r.asJSON(inner)
	case n < 8 || err != nil || depth >= maxDepth:
		other := r.pool[r.IntN(len(r.pool))]
		a.TypeUrl, a.Value = other.TypeUrl, other.Value
	default:
		r.once(inner.ProtoReflect(), depth+1)
		a.Value, _ = proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(inner)
	}
}

// field gives a field another value, or none.
func (r mutator) field(m protoreflect.Message, fd protoreflect.FieldDescriptor, depth int) {
	if m.Has(fd) && r.IntN(3) == 0 {
		m.Clear(fd)
		return
	}
	switch {
	case fd.IsMap():
		mm := m.Mutable(fd).Map()
		key := r.value(m, fd.MapKey(), depth).MapKey()
		if fd.MapValue().Message() != nil {
			v := mm.NewValue()
			r.fill(v.Message(), depth)
			mm.Set(key, v)
			return
		}
		mm.Set(key, r.value(m, fd.MapValue(), depth))
	case fd.IsList():
		l := m.Mutable(fd).List()
		if n := l.Len(); n > 1 && r.IntN(3) == 0 { // without one, or in another order
			r.rearrange(l)
			return
		}
		if n := l.Len(); n > 0 && r.IntN(2) == 0 { // the same again
			if fd.Message() != nil {
				l.Append(protoreflect.ValueOfMessage(proto.Clone(l.Get(r.IntN(n)).Message().Interface()).ProtoReflect()))
				return
			}
			l.Append(l.Get(r.IntN(n)))
			return
		}
		if fd.Message() != nil {
			v := l.NewElement()
			r.fill(v.Message(), depth)
			l.Append(v)
			return
		}
		l.Append(r.value(m, fd, depth))
	case fd.Message() != nil:
		r.fill(m.Mutable(fd).Message(), depth)
	default:
		m.Set(fd, r.value(m, fd, depth))
	}
}

// rearrange takes the last element of a list away, or swaps it with another.
func (r mutator) rearrange(l protoreflect.List) {
	last := l.Len() - 1
	i := r.IntN(last)
	a, b := l.Get(i), l.Get(last)
	if r.IntN(2) == 0 {
		l.Set(i, b)
		l.Truncate(last)
		return
	}
	l.Set(i, b)
	l.Set(last, a)
}

// asJSON is a TypedStruct of a message.
func (r mutator) asJSON(m proto.Message) (typeURL string, value []byte) {
	content := &structpb.Struct{}
	if text, err := protojson.Marshal(m); err == nil {
		_ = protojson.Unmarshal(text, content) // which a message with a mapping of its own is not
	}
	url := jsonNames[r.IntN(len(jsonNames))]
	if r.IntN(3) == 0 {
		url = urlOf(m)
	}
	a := packed(&xdstypev3.TypedStruct{TypeUrl: url, Value: content})
	if r.IntN(2) == 0 {
		a = packed(&udpatypev1.TypedStruct{TypeUrl: url, Value: content})
	}
	return a.TypeUrl, a.Value
}

// jsonNames are of what gRPC configures by JSON, and some that it does not.
var jsonNames = []string{
	"", "/", "a/", "pick_first", "x/Round_Robin", "round_robin/", "a/least_request_experimental", "ring_hash_experimental", "weighted_round_robin",
	"a/b/xds_wrr_locality_experimental", "rls_experimental", "grpclb", "randomsubsetting", "xds_override_host_experimental", "stdout_logger", "x/stdout_logger",
}

// fill sets some fields of a message.
func (r mutator) fill(m protoreflect.Message, depth int) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		other := r.pool[r.IntN(len(r.pool))]
		a.TypeUrl, a.Value = other.TypeUrl, other.Value
		return
	}
	fields := m.Descriptor().Fields()
	for range r.IntN(3) {
		if fields.Len() > 0 && depth < maxDepth {
			r.field(m, fields.Get(r.IntN(fields.Len())), depth+1)
		}
	}
}

// texts are strings that mean something somewhere.
var texts = []string{
	"", "a", "b", "l", "there", "elsewhere", "*", "[", "a.*b", "(", "10.0.0.0", "::1", "192.168.0.1", "xdstp://a/b", "grpc-x", ":scheme", "host",
	"10.0.0.256", "fe80::1%eth0", "::ffff:10.0.0.1", "::ffff:0:0", "10.0.0.1:80", "010.0.0.1", "10.0.0.0/8", "xdstp:", "XDSTP://a/b", "(?i)a", "a{1001}", "a{1000}{2}", `\C`, `\pZ`, "(?P<a>b)", "^a$|b", `\Qa`, ")(",
	"GRPC-X", ":SCHEME", "grpc", "Unavailable , CANCELLED", "1s", "-1s", "1.5s", "1h", ".5s", "é", "stdout_logger", strings.Repeat("a", 255), strings.Repeat("é", 128),
	"raw_buffer", "tls", "unavailable", "envoy.transport_sockets.tls", "envoy.clusters.aggregate", "io.grpc.channel_id",
}

// Some are bounds of durations plus 1, which is taken away of what has a sign.
var numbers = []uint64{
	0, 0, 1, 1, 2, 3, 31, 33, 100, 101, 1023, 4097, 8388608, 8388609, 1<<31 - 1, 1<<32 - 1,
	1e9, 1e9 + 1, 315576000001, 315576000002, 1<<63 - 1,
}

// value is one of a field without messages.
func (r mutator) value(m protoreflect.Message, fd protoreflect.FieldDescriptor, _ int) protoreflect.Value {
	n := numbers[r.IntN(len(numbers))]
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 1)
	case protoreflect.EnumKind:
		vs := fd.Enum().Values()
		if r.IntN(10) == 0 {
			return protoreflect.ValueOfEnum(99)
		}
		return protoreflect.ValueOfEnum(vs.Get(r.IntN(vs.Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n) - 1)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(n) - 1)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n) - 1)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n) - 1)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(texts[r.IntN(len(texts))])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(texts[r.IntN(len(texts))]))
	}
	return fd.Default()
}
