package validation

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
)

// fieldError is an error of generated rules (protoc-gen-validate).
type fieldError interface {
	Field() string // as in Go, with the place in a list or the key of a map
	Reason() string
	Cause() error
}

// fields judges a message by its generated rules, with all that is part of it.
func (j *judge) fields(r resources.Resource, path string, m proto.Message) {
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		j.faults(r, path, m.ProtoReflect().Descriptor(), v.ValidateAll())
	}
}

// faults finds the single faults in an error about a message; d is nil if its type is not known.
func (j *judge) faults(r resources.Resource, path string, d protoreflect.MessageDescriptor, err error) {
	if err == nil {
		return
	}
	if all, ok := err.(interface{ AllErrors() []error }); ok {
		for _, e := range all.AllErrors() {
			j.faults(r, path, d, e)
		}
		return
	}
	fe, ok := err.(fieldError)
	if !ok {
		j.found(r, Error, RuleField, path, "is not valid")
		return
	}
	name, in := FieldOf(d, fe.Field())
	at := resources.Join(path, name)
	if cause := fe.Cause(); isRule(cause) {
		j.faults(r, at, in, cause)
		return
	}
	j.found(r, Error, RuleField, at, fe.Reason())
}

// isRule says whether an error is of the rules of a part. Others may quote the value.
func isRule(err error) bool {
	_, several := err.(interface{ AllErrors() []error })
	_, one := err.(fieldError)
	return err != nil && (several || one)
}

// FieldOf is the name in JSON of what the generated code calls Field or Field[place], or of a oneof,
// and the type of its messages.
func FieldOf(d protoreflect.MessageDescriptor, field string) (name string, in protoreflect.MessageDescriptor) {
	base, place, some := strings.Cut(field, "[")
	if some {
		place = "[" + place
	}
	if d == nil {
		return field, nil
	}
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		if !strings.EqualFold(plain(string(fd.Name())), plain(base)) {
			continue
		}
		if fd.IsMap() {
			if some {
				place = fmt.Sprintf("[%q]", place[1:len(place)-1])
			}
			return fd.JSONName() + place, fd.MapValue().Message()
		}
		return fd.JSONName() + place, fd.Message()
	}
	return strings.ToLower(base[:min(1, len(base))]) + base[min(1, len(base)):] + place, nil
}

func plain(name string) string { return strings.ReplaceAll(name, "_", "") }
