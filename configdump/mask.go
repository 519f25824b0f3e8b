package configdump

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// mask is the fields that are kept of a message, with what is kept of each; none keeps all.
type mask map[string]mask

// parseMask reads paths that are separated by commas.
func parseMask(text string) mask {
	m := mask{}
	for path := range strings.SplitSeq(text, ",") {
		if path = strings.TrimSpace(path); path == "" {
			continue
		}
		at := m
		for name := range strings.SplitSeq(path, ".") {
			inner, known := at[name]
			if known && len(inner) == 0 { // another path keeps all of it
				at = nil
				break
			}
			if !known {
				inner = mask{}
				at[name] = inner
			}
			at = inner
		}
		clear(at) // all of it is kept
	}
	return m
}

// of is what is kept of a field, and whether anything is.
func (m mask) of(field string) (mask, bool) {
	if len(m) == 0 {
		return nil, true
	}
	inner, ok := m[field]
	return inner, ok
}

// bad finds a path that leads to a field of none of the messages. What an Any contains may be anything.
func (m mask) bad(roots []protoreflect.MessageDescriptor) string {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		var inside []protoreflect.MessageDescriptor
		known := false
		for _, md := range roots {
			switch fd := md.Fields().ByTextName(name); {
			case md.FullName() == "google.protobuf.Any":
				return ""
			case fd == nil:
			case fd.Message() != nil && !fd.IsMap():
				inside = append(inside, fd.Message())
				fallthrough
			default:
				known = true
			}
		}
		if !known {
			return name
		}
		if bad := m[name].bad(inside); bad != "" {
			return name + "." + bad
		}
	}
	return ""
}

// trimmed is a message with the fields that are kept; the message itself is not changed.
func trimmed(m proto.Message, only mask) proto.Message {
	if len(only) == 0 {
		return m
	}
	from := m.ProtoReflect()
	to := from.New()
	deep := false
	for name, inner := range only {
		if fd := from.Descriptor().Fields().ByTextName(name); fd != nil && from.Has(fd) {
			to.Set(fd, from.Get(fd))
			deep = deep || len(inner) > 0
		}
	}
	if deep {
		to = proto.Clone(to.Interface()).ProtoReflect()
		trim(to, only)
	}
	return to.Interface()
}

// trim clears the fields of a message that are not kept, also in what an Any contains.
func trim(m protoreflect.Message, only mask) {
	if len(only) == 0 {
		return // all are
	}
	if a, ok := m.Interface().(*anypb.Any); ok {
		inner, err := a.UnmarshalNew()
		if a.Value = nil; err == nil {
			trim(inner.ProtoReflect(), only)
			a.Value, _ = proto.MarshalOptions{AllowPartial: true}.Marshal(inner) // it was read
		}
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		inner, ok := only[fd.TextName()]
		switch {
		case !ok:
			m.Clear(fd)
		case fd.Message() == nil || fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				trim(v.List().Get(i).Message(), inner)
			}
		default:
			trim(v.Message(), inner)
		}
		return true
	})
}
