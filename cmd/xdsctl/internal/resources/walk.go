package resources

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// maxDepth is how deep an Any may stand in others for its content to be looked at.
const maxDepth = 40

// Walk calls visit with a message and each message in it, in the order of the fields, also with
// those in an Any; with the Any itself if its content cannot be read. Paths are of the names of
// JSON: `filterChains[0].filters[1].typedConfig`; that of the message is "". whole says that it is
// the message, or the content of an Any, and not a part of one.
func Walk(m proto.Message, visit func(path string, m proto.Message, whole bool)) {
	w := walker{visit}
	w.message("", m.ProtoReflect(), true, 0)
}

type walker struct {
	visit func(path string, m proto.Message, whole bool)
}

func (w walker) message(path string, m protoreflect.Message, whole bool, depth int) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		inner, err := a.UnmarshalNew()
		if err != nil || depth == maxDepth {
			w.visit(path, a, false)
			return
		}
		w.message(path, inner.ProtoReflect(), true, depth+1)
		return
	}
	w.visit(path, m.Interface(), whole)
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) || fd.Message() == nil {
			continue
		}
		at := Join(path, fd.JSONName())
		switch v := m.Get(fd); {
		case fd.IsMap():
			w.mapping(at, fd, v.Map(), depth)
		case fd.IsList():
			for j := range v.List().Len() {
				w.message(at+"["+strconv.Itoa(j)+"]", v.List().Get(j).Message(), false, depth)
			}
		default:
			w.message(at, v.Message(), false, depth)
		}
	}
}

func (w walker) mapping(path string, fd protoreflect.FieldDescriptor, m protoreflect.Map, depth int) {
	if fd.MapValue().Message() == nil {
		return
	}
	var keys []protoreflect.MapKey
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return cmp.Compare(a.String(), b.String()) })
	for _, k := range keys {
		w.message(fmt.Sprintf("%s[%q]", path, k.String()), m.Get(k).Message(), false, depth)
	}
}

// Join appends a field to a path.
func Join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}
