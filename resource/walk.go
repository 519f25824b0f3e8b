package resource

import (
	"encoding/binary"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// layout is what a walk over the bytes of a message knows of its type. It is immutable once it
// is made.
type layout struct {
	near []field // by number
	far  map[protowire.Number]field
	// unsure is whether proto.Unmarshal looks at more than the fields here: extensions, and
	// fields that have to be there.
	unsure bool
}

// field is one field of a message; the zero value is one that the type does not have.
type field struct {
	check check
	sub   *layout // of checkMessage
}

// check is what protobuf demands of a field's value, beyond that it is whole.
type check uint8

const (
	checkNothing check = iota
	checkText          // valid UTF-8
	checkMessage       // a message, or an entry of a map, which is a message with a key and a value
	checkVarints       // packed elements, here and below
	checkFixed32
	checkFixed64
	checkGroup
)

// maxNear is how many numbers of fields are found without a map.
const maxNear = 128

// maxDepth is how deep messages may be nested that a walk accepts by itself; protobuf's own
// bound is 10,000.
const maxDepth = 100

// newLayout compiles a message and what it refers to; known has what was compiled before.
func newLayout(m protoreflect.MessageDescriptor, known map[protoreflect.FullName]*layout) *layout {
	if l := known[m.FullName()]; l != nil {
		return l
	}
	l := &layout{unsure: m.ExtensionRanges().Len() > 0 || m.RequiredNumbers().Len() > 0}
	known[m.FullName()] = l
	fields := m.Fields()
	size := protowire.Number(0)
	for i := range fields.Len() {
		if n := fields.Get(i).Number(); n < maxNear {
			size = max(size, n+1)
		}
	}
	l.near = make([]field, size)
	l.far = map[protowire.Number]field{}
	for i := range fields.Len() {
		fd := fields.Get(i)
		f := field{check: checkOf(fd)}
		if f.check == checkMessage {
			f.sub = newLayout(fd.Message(), known)
		}
		if n := fd.Number(); n < maxNear {
			l.near[n] = f
		} else {
			l.far[n] = f
		}
	}
	return l
}

func checkOf(fd protoreflect.FieldDescriptor) check {
	switch kind := fd.Kind(); {
	case kind == protoreflect.MessageKind:
		return checkMessage
	case kind == protoreflect.GroupKind:
		return checkGroup
	case kind == protoreflect.StringKind && isUTF8(fd):
		return checkText
	case kind == protoreflect.StringKind || kind == protoreflect.BytesKind || !fd.IsList():
		return checkNothing
	case kind == protoreflect.Fixed32Kind || kind == protoreflect.Sfixed32Kind || kind == protoreflect.FloatKind:
		return checkFixed32
	case kind == protoreflect.Fixed64Kind || kind == protoreflect.Sfixed64Kind || kind == protoreflect.DoubleKind:
		return checkFixed64
	default:
		return checkVarints
	}
}

// isUTF8 says whether protobuf refuses a string field that is not valid UTF-8.
func isUTF8(fd protoreflect.FieldDescriptor) bool {
	if e, ok := fd.(interface{ EnforceUTF8() bool }); ok && fd.Syntax() == protoreflect.Editions {
		return e.EnforceUTF8()
	}
	return fd.Syntax() == protoreflect.Proto3
}

// accepts walks over the bytes of a message and says whether proto.Unmarshal certainly accepts
// them. Where it says no, proto.Unmarshal decides. It allocates nothing.
//
// A value whose wire type is not its field's is an unknown field, which has to be whole and no
// more (protobuf's encoding, "Unknown fields"). So only values that carry a length are looked at.
// Numbers of one byte, which most are, are read in place: calls would take most of the time.
func (l *layout) accepts(b []byte, depth int) bool {
	if l.unsure || depth == 0 {
		return false
	}
	for at := 0; at < len(b); {
		tag, n := uint64(b[at]), 1
		if tag >= 0x80 {
			tag, n = protowire.ConsumeVarint(b[at:])
		}
		num, typ := tag>>3, protowire.Type(tag&7)
		if n < 0 || num < uint64(protowire.MinValidNumber) || num > uint64(protowire.MaxValidNumber) {
			return false
		}
		at += n
		if typ != protowire.BytesType {
			if n = 1; typ != protowire.VarintType || at == len(b) || b[at] >= 0x80 {
				n = protowire.ConsumeFieldValue(protowire.Number(num), typ, b[at:])
			}
			if n < 0 || typ == protowire.StartGroupType && l.field(num).check == checkGroup {
				return false
			}
			at += n
			continue
		}
		if at == len(b) {
			return false
		}
		size, n := uint64(b[at]), 1
		if size >= 0x80 {
			size, n = protowire.ConsumeVarint(b[at:])
		}
		if n < 0 || size > uint64(len(b)-at-n) {
			return false
		}
		at += n
		if f, v := l.field(num), b[at:at+int(size)]; f.check != checkNothing && !f.good(v, depth) {
			return false
		}
		at += int(size)
	}
	return true
}

func (l *layout) field(num uint64) field {
	if num < uint64(len(l.near)) {
		return l.near[num]
	}
	return l.far[protowire.Number(num)]
}

// good says whether a value that carries a length is certainly good.
func (f field) good(v []byte, depth int) bool {
	switch f.check {
	case checkText:
		return isText(v)
	case checkMessage:
		return f.sub.accepts(v, depth-1)
	case checkVarints:
		return areVarints(v)
	case checkFixed32:
		return len(v)%4 == 0
	case checkFixed64:
		return len(v)%8 == 0
	case checkNothing, checkGroup:
	}
	return true
}

func areVarints(b []byte) bool {
	for len(b) > 0 {
		_, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// isText says whether a string is valid UTF-8. Most are ASCII and short, for which it is made.
func isText(b []byte) bool {
	const high = 0x8080808080808080
	some := uint64(0)
	if len(b) < 8 {
		for _, c := range b {
			some |= uint64(c)
		}
	} else {
		for rest := b; len(rest) > 8; rest = rest[8:] {
			some |= binary.LittleEndian.Uint64(rest)
		}
		some |= binary.LittleEndian.Uint64(b[len(b)-8:])
	}
	return some&high == 0 || utf8.Valid(b)
}
