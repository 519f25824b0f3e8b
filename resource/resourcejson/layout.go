package resourcejson

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/internal/sensitive"
)

// layout is what a writer knows of a message.
type layout struct {
	protoreflect.MessageDescriptor
	mapping  mapping
	secret   bool
	singular bool                        // a list collection whose field is for one entry
	near     [maxNear]*field             // by number; nil until it is found
	far      map[protowire.Number]*field // the others
}

const maxNear = 64

// mapping is the JSON of a message.
type mapping uint8

const (
	ofFields mapping = iota
	ofAny
	ofWrapper
	ofDuration
	ofTimestamp
	ofStruct
	ofValue
	ofList
	ofMask
)

// mappings are the messages of google.protobuf whose JSON is not an object of their fields.
var mappings = map[protoreflect.Name]mapping{
	"Any": ofAny, "Timestamp": ofTimestamp, "Duration": ofDuration, "FieldMask": ofMask, "Struct": ofStruct, "Value": ofValue, "ListValue": ofList,
	"BoolValue": ofWrapper, "BytesValue": ofWrapper, "StringValue": ofWrapper, "DoubleValue": ofWrapper, "FloatValue": ofWrapper,
	"Int32Value": ofWrapper, "Int64Value": ofWrapper, "UInt32Value": ofWrapper, "UInt64Value": ofWrapper,
}

const (
	anyName          = "google.protobuf.Any"
	wellKnownPackage = "google.protobuf"
)

func mappingOf(d protoreflect.MessageDescriptor) mapping {
	if d.FullName().Parent() != wellKnownPackage {
		return ofFields
	}
	return mappings[d.Name()]
}

// hasOwnMapping says whether the JSON of a type is not an object of its fields.
func hasOwnMapping(d protoreflect.MessageDescriptor) bool { return mappingOf(d) != ofFields }

// field is what a writer knows of a field.
type field struct {
	protoreflect.FieldDescriptor
	kind         protoreflect.Kind
	order        int    // among the fields of the message
	name         string // with the colon
	wire         protowire.Type
	list, mapped bool
	single       bool // it has one value, which is no message
	merges       bool // it has one message, whose parts follow one another
	packable     bool // a list that may be one value of bytes
	presence     bool // it is shown if it is set, though it be zero
	utf8         bool // it has to be
	oneof        protoreflect.OneofDescriptor
	sub          *layout // of a message, and of the entries of a map; nil until it is needed

	credential, inline, harmless bool
	header                       bool // a credential if the header's key says so
	keys                         bool // a set of JSON Web Keys
}

// layout finds the layout of a message.
func (w *Writer) layout(d protoreflect.MessageDescriptor) *layout {
	l := w.layouts[d]
	if l == nil {
		l = &layout{MessageDescriptor: d, mapping: mappingOf(d), secret: d.FullName() == secretName, singular: isSingular(d)}
		if w.layouts == nil {
			w.layouts = map[protoreflect.MessageDescriptor]*layout{}
		}
		w.layouts[d] = l
	}
	return l
}

// linked finds the layout of a type URL; nil if its message is not linked in.
func (w *Writer) linked(typeURL []byte) *layout {
	l := w.byURL[string(typeURL)]
	if l != nil {
		return l
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(string(typeURL))
	if err != nil {
		return nil
	}
	l = w.layout(mt.Descriptor())
	if w.byURL == nil {
		w.byURL = map[string]*layout{}
	}
	if len(w.byURL) < maxURLs {
		w.byURL[string(typeURL)] = l
	}
	return l
}

// maxURLs is how many URLs are remembered: many may end in the name of one message.
const maxURLs = 1024

// field finds a field by its number; nil if there is none.
func (w *Writer) field(l *layout, n protowire.Number) *field {
	if n < maxNear {
		if f := l.near[n]; f != nil {
			return f
		}
	} else if f := l.far[n]; f != nil {
		return f
	}
	fd := l.Fields().ByNumber(n)
	if fd == nil {
		return nil
	}
	f := w.newField(fd)
	switch {
	case n < maxNear:
		l.near[n] = f
	case l.far == nil:
		l.far = map[protowire.Number]*field{n: f}
	default:
		l.far[n] = f
	}
	return f
}

func (w *Writer) newField(fd protoreflect.FieldDescriptor) *field {
	name := fd.FullName()
	f := &field{
		FieldDescriptor: fd, kind: fd.Kind(), order: fd.Index(), list: fd.IsList(), mapped: fd.IsMap(), presence: fd.HasPresence(), wire: wireTypes[fd.Kind()],
		inline: inline[name], harmless: harmless[name], keys: sensitive.IsKeySet(fd), header: sensitive.IsHeader(fd),
		// H-3: nobody can tell what is secret in what is untyped.
		credential: untyped[name] || sensitive.Field(fd),
	}
	if f.name = fd.JSONName(); w.ProtoNames {
		f.name = fd.TextName()
	}
	quoted := Writer{}
	text(&quoted, f.name)
	f.name = string(quoted.buf) + ":"
	f.single = !f.list && fd.Message() == nil
	f.merges = !f.list && f.kind == protoreflect.MessageKind && !isSingular(fd.ContainingMessage())
	f.packable = f.list && f.wire != protowire.BytesType && f.wire != protowire.StartGroupType
	f.utf8 = f.kind == protoreflect.StringKind && fd.ParentFile().Syntax() != protoreflect.Proto2
	if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() {
		f.oneof = o
	}
	return f
}

// within is the layout of the message in a field.
func (w *Writer) within(f *field) *layout {
	if f.sub == nil {
		f.sub = w.layout(f.Message())
	}
	return f.sub
}

// wireTypes are those of single values.
var wireTypes = [...]protowire.Type{
	protoreflect.BoolKind: protowire.VarintType, protoreflect.EnumKind: protowire.VarintType,
	protoreflect.Int32Kind: protowire.VarintType, protoreflect.Sint32Kind: protowire.VarintType, protoreflect.Uint32Kind: protowire.VarintType,
	protoreflect.Int64Kind: protowire.VarintType, protoreflect.Sint64Kind: protowire.VarintType, protoreflect.Uint64Kind: protowire.VarintType,
	protoreflect.Sfixed32Kind: protowire.Fixed32Type, protoreflect.Fixed32Kind: protowire.Fixed32Type, protoreflect.FloatKind: protowire.Fixed32Type,
	protoreflect.Sfixed64Kind: protowire.Fixed64Type, protoreflect.Fixed64Kind: protowire.Fixed64Type, protoreflect.DoubleKind: protowire.Fixed64Type,
	protoreflect.StringKind: protowire.BytesType, protoreflect.BytesKind: protowire.BytesType, protoreflect.MessageKind: protowire.BytesType,
	protoreflect.GroupKind: protowire.StartGroupType,
}
