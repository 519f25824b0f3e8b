package view

import (
	"errors"
	"fmt"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

// maxOpened is how deep an Any may stand in others.
const maxOpened = 16

var errTooNested = errors.New("messages are nested too deep in google.protobuf.Any (16 levels are followed)")

// hooks finds what messages name.
type hooks struct {
	find    map[protoreflect.FullName][]func(proto.Message, func(Dependency))
	reaches map[protoreflect.FullName]bool // by message: there may be a hooked one, or an Any, below it
	host    string                         // of the root
}

func newHooks(all []Hook, host string) *hooks {
	h := &hooks{map[protoreflect.FullName][]func(proto.Message, func(Dependency)){}, map[protoreflect.FullName]bool{}, host}
	for _, hook := range all {
		if hook.Message != nil && hook.Find != nil {
			name := hook.Message.ProtoReflect().Descriptor().FullName()
			h.find[name] = append(h.find[name], hook.Find)
		}
	}
	return h
}

// findings are what hooks find in a message.
type findings struct {
	needs    []Dependency
	clusters names
	err      error // about parts that are not followed
}

// VIEW-43: walk finds the dependencies of a message.
func (h *hooks) walk(m proto.Message) (f findings) {
	w := walker{hooks: h}
	w.add = func(d Dependency) {
		switch {
		case d.Type == nil || d.Name == "":
		case d.Type.TypeURL() == cdsKind.TypeURL():
			f.clusters.add(d.Name, d.Need.refs())
		case notHooked[d.Type.TypeURL()]:
			w.err = fmt.Errorf("a hook names %q of the type %s, which only the view itself follows", d.Name, d.Type.TypeURL())
		default:
			f.needs = append(f.needs, d)
		}
	}
	w.message(m.ProtoReflect(), 0)
	f.err = w.err
	f.clusters.compact()
	return f
}

type walker struct {
	*hooks
	add func(Dependency)
	err error // the first
}

// message looks at a message that stands in so many Any.
func (w *walker) message(m protoreflect.Message, depth int) {
	d, m := m.Descriptor(), w.chosen(m)
	for _, find := range w.find[d.FullName()] {
		find(m.Interface(), w.add)
	}
	if a, ok := m.Interface().(*anypb.Any); ok {
		w.open(a, depth)
		return
	}
	if !w.mayReach(d) {
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		w.field(fd, v, depth)
		return true
	})
}

// chosen is a message without what does not belong to the view of a host: other virtual hosts, and
// the filter chains of a listener (VIEW-3).
func (h *hooks) chosen(m protoreflect.Message) protoreflect.Message {
	if h.host == "" {
		return m
	}
	switch full := m.Interface().(type) {
	case *routev3.RouteConfiguration:
		own := &routev3.RouteConfiguration{}
		copyBut(own.ProtoReflect(), m, "virtual_hosts")
		if vh := matchHost(full, h.host); vh != nil {
			own.VirtualHosts = []*routev3.VirtualHost{vh}
		}
		return own.ProtoReflect()
	case *listenerv3.Listener:
		own := &listenerv3.Listener{}
		copyBut(own.ProtoReflect(), m, "filter_chains", "default_filter_chain")
		return own.ProtoReflect()
	}
	return m
}

// copyBut copies fields, which both messages share then, but for some.
func copyBut(to, from protoreflect.Message, but ...protoreflect.Name) {
	from.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !slices.Contains(but, fd.Name()) {
			to.Set(fd, v)
		}
		return true
	})
}

func (w *walker) field(fd protoreflect.FieldDescriptor, v protoreflect.Value, depth int) {
	switch {
	case fd.IsMap():
		if fd.MapValue().Message() != nil && w.mayReach(fd.MapValue().Message()) {
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				w.message(v.Message(), depth)
				return true
			})
		}
	case fd.Message() == nil || !w.mayReach(fd.Message()):
	case fd.IsList():
		for i := range v.List().Len() {
			w.message(v.List().Get(i).Message(), depth)
		}
	default:
		w.message(v.Message(), depth)
	}
}

// open looks into an Any. What the program does not link, or cannot be read, names nothing.
func (w *walker) open(a *anypb.Any, depth int) {
	if a.GetTypeUrl() == "" {
		return
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(a.GetTypeUrl())
	if err != nil || !w.mayReach(mt.Descriptor()) {
		return
	}
	if depth == maxOpened {
		w.err = errTooNested
		return
	}
	inner := mt.New()
	if err := proto.Unmarshal(a.GetValue(), inner.Interface()); err == nil {
		w.message(inner, depth+1)
	}
}

// mayReach says whether a message may have a hooked message or an Any in it.
func (w *walker) mayReach(d protoreflect.MessageDescriptor) bool {
	known, ok := w.reaches[d.FullName()]
	if !ok {
		seen := map[protoreflect.FullName]bool{}
		known = w.search(d, seen)
		w.reaches[d.FullName()] = known
		if !known {
			for name := range seen { // nothing below it does either
				w.reaches[name] = false
			}
		}
	}
	return known
}

func (w *walker) search(d protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	name := d.FullName()
	switch {
	case w.find[name] != nil || name == "google.protobuf.Any":
		return true
	case seen[name]:
		return false
	}
	seen[name] = true
	for i := range d.Fields().Len() {
		if m := d.Fields().Get(i).Message(); m != nil && w.search(m, seen) {
			return true
		}
	}
	return false
}
