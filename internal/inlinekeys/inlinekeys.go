// Package inlinekeys says whether an encoded resource may be written to disk: whether it holds a
// Secret, a key or another credential in its own bytes, at any depth and inside any Any. An Any that it
// cannot look into it does not let through, nor a credential with a field that it does not know. It walks over the wire form, along the fields that can
// lead to such content, and allocates nothing for a message whose type it has seen.
package inlinekeys

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/internal/sensitive"
)

// ErrInline says that a resource holds a credential.
var ErrInline = errors.New("the resource holds a secret or an inline key")

// errBytes says that bytes are no message of their type.
var errBytes = errors.New("the bytes are no message of the type")

// UnknownError says that a resource holds an Any that cannot be looked into.
type UnknownError struct{ TypeURL string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the resource holds a message of type %q, which the program does not link or which is not looked into", e.TypeURL)
}

// Scanner looks into resources. It is not safe for concurrent use. The zero value is ready.
type Scanner struct {
	layouts map[key]*layout
	byURL   map[string]*message
}

// message is what a type URL stands for.
type message struct {
	protoreflect.MessageDescriptor                // nil if it is not linked
	layouts                        [modes]*layout // nil until it is needed
}

// mode says what counts as a credential where a walk is.
type mode uint8

const (
	plain  mode = iota
	inTLS       // the inline content of a DataSource too
	secret      // all content but where a credential is
	modes
)

type key struct {
	name protoreflect.FullName
	mode mode
}

// layout is what a walk knows of a message in a mode.
type layout struct {
	denied bool // it is a credential as a whole
	near   []field
	far    map[protowire.Number]field
	other  field // what the descriptor does not have
	// risky says that it can lead to a credential.
	risky bool
}

type field struct {
	action action
	sub    *layout // of descend
	mode   mode    // of open
}

type action uint8

const (
	pass    action = iota
	refuse         // if it is set and not empty
	descend        // into a message
	open           // an Any
	keys           // a DataSource of JSON Web Keys, which may be public
)

const (
	maxNear  = 64
	maxDepth = 100
)

// secrets are the messages that are a credential as a whole, and those whose content is of no known type.
var secrets = map[protoreflect.FullName]bool{
	"envoy.extensions.transport_sockets.tls.v3.Secret": true,
	"envoy.api.v2.auth.Secret":                         true,
	"xds.type.v3.TypedStruct":                          true,
	"udpa.type.v1.TypedStruct":                         true,
}

// unmarked are fields that lead to credentials or to where they are, in messages of any type.
var unmarked = map[protoreflect.FullName]bool{
	"envoy.extensions.filters.http.credential_injector.v3.CredentialInjector.credential": true,
	"envoy.extensions.http.injected_credentials.generic.v3.Generic.credential":           true,
}

// inline are the fields that hold the content of a data source.
var inline = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.DataSource.inline_bytes":  true,
	"envoy.config.core.v3.DataSource.inline_string": true,
	"envoy.api.v2.core.DataSource.inline_bytes":     true,
	"envoy.api.v2.core.DataSource.inline_string":    true,
}

// harmless are fields that say where a credential is, and hold none.
var harmless = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.DataSource.filename":                                   true,
	"envoy.config.core.v3.DataSource.environment_variable":                       true,
	"envoy.config.core.v3.DataSource.watched_directory":                          true,
	"envoy.config.core.v3.WatchedDirectory.path":                                 true,
	"envoy.api.v2.core.DataSource.filename":                                      true,
	"envoy.extensions.transport_sockets.tls.v3.PrivateKeyProvider.provider_name": true,
	"envoy.extensions.transport_sockets.tls.v3.PrivateKeyProvider.fallback":      true,
}

// Check returns nil if a resource of a type, given by the bytes of its Any, may be written; else
// [ErrInline], an [*UnknownError], or that the bytes are not of the type.
func (s *Scanner) Check(typeURL string, raw []byte) error {
	l, err := layoutOf(s, typeURL, plain)
	if err != nil {
		return err
	}
	return s.walk(l, raw, maxDepth)
}

// layoutOf finds or compiles the layout of the message of a type.
func layoutOf[T string | []byte](s *Scanner, typeURL T, in mode) (*layout, error) {
	m := s.byURL[string(typeURL)]
	if m == nil {
		m = s.find(string(typeURL))
	}
	if m.MessageDescriptor == nil {
		return nil, &UnknownError{string(typeURL)}
	}
	if m.layouts[in] == nil {
		m.layouts[in] = s.layout(m.MessageDescriptor, in)
	}
	return m.layouts[in], nil
}

// find looks a type up among those that are linked.
func (s *Scanner) find(typeURL string) *message {
	m := new(message)
	name := protoreflect.FullName(typeURL[strings.LastIndexByte(typeURL, '/')+1:])
	if t, err := protoregistry.GlobalTypes.FindMessageByName(name); err == nil {
		m.MessageDescriptor = t.Descriptor()
	}
	if s.byURL == nil {
		s.byURL = map[string]*message{}
	}
	if len(s.byURL) < maxTypes {
		s.byURL[strings.Clone(typeURL)] = m
	}
	return m
}

// maxTypes is how many type URLs are remembered, which may be those of an attacker.
const maxTypes = 4096

// layout finds or compiles the layout of a message.
func (s *Scanner) layout(md protoreflect.MessageDescriptor, in mode) *layout {
	if l := s.layouts[key{md.FullName(), in}]; l != nil {
		return l
	}
	c := compiler{s.layouts, map[key]*layout{}, map[*layout][]*layout{}}
	if s.layouts == nil {
		s.layouts = map[key]*layout{}
		c.known = s.layouts
	}
	l := c.compile(md, in)
	c.spread()
	for k, l := range c.fresh {
		l.prune()
		s.layouts[k] = l
	}
	return l
}

// compiler compiles layouts that refer to each other.
type compiler struct {
	known  map[key]*layout
	fresh  map[key]*layout
	within map[*layout][]*layout // the layouts that lead to one
}

func (c *compiler) compile(md protoreflect.MessageDescriptor, in mode) *layout {
	if in == plain && isTLS(md.FullName()) {
		in = inTLS
	}
	k := key{md.FullName(), in}
	if l := c.known[k]; l != nil {
		return l
	}
	if l := c.fresh[k]; l != nil {
		return l
	}
	l := &layout{denied: secrets[md.FullName()], far: map[protowire.Number]field{}}
	if in == secret {
		l.other.action = refuse // LKG-1: a later version of the message may have other content
	}
	l.risky = l.denied || in == secret
	c.fresh[k] = l
	fields := md.Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		f := c.field(l, fd, in)
		if n := fd.Number(); n < maxNear {
			for int(n) >= len(l.near) {
				l.near = append(l.near, l.other)
			}
			l.near[n] = f
		} else {
			l.far[n] = f
		}
		l.risky = l.risky || f.action == refuse || f.action == open || f.action == keys || f.action == descend && f.sub.risky
	}
	return l
}

func (c *compiler) field(of *layout, fd protoreflect.FieldDescriptor, in mode) field {
	if sensitive.IsKeySet(fd) && in == plain {
		return field{action: keys}
	}
	if sensitive.Field(fd) || unmarked[fd.FullName()] {
		in = secret
	}
	switch {
	case in == secret && harmless[fd.FullName()]:
		return field{}
	case in >= inTLS && inline[fd.FullName()]:
		return field{action: refuse}
	case fd.Message() == nil || fd.Kind() == protoreflect.GroupKind:
		if in == secret {
			return field{action: refuse}
		}
		return field{}
	case fd.Message().FullName() == "google.protobuf.Any":
		if in == secret {
			return field{action: refuse}
		}
		return field{action: open, mode: in}
	case fd.Message().ParentFile().Package() == "google.protobuf":
		if in == secret {
			return field{action: refuse}
		}
		return field{}
	}
	sub := c.compile(fd.Message(), in)
	c.within[sub] = append(c.within[sub], of)
	return field{action: descend, sub: sub}
}

// spread makes risky what leads to what is.
func (c *compiler) spread() {
	var queue []*layout
	for l := range c.within {
		if l.risky {
			queue = append(queue, l)
		}
	}
	for len(queue) > 0 {
		l := queue[0]
		queue = queue[1:]
		for _, outer := range c.within[l] {
			if !outer.risky {
				outer.risky = true
				queue = append(queue, outer)
			}
		}
	}
}

// prune has walks pass over what leads to nothing.
func (l *layout) prune() {
	for i, f := range l.near {
		if f.action == descend && !f.sub.risky {
			l.near[i] = field{}
		}
	}
	for n, f := range l.far {
		if f.action == descend && !f.sub.risky {
			l.far[n] = field{}
		}
	}
}

func (l *layout) field(num uint64) field {
	if num < uint64(len(l.near)) {
		return l.near[num]
	}
	if f, ok := l.far[protowire.Number(num)]; ok {
		return f
	}
	return l.other
}

func (s *Scanner) walk(l *layout, b []byte, depth int) error {
	switch {
	case l.denied:
		return ErrInline
	case !l.risky:
		return nil
	case depth == 0:
		return errBytes
	}
	for len(b) > 0 {
		num, v, rest, ok := next(b)
		if !ok {
			return errBytes
		}
		b = rest
		f := l.field(num)
		switch {
		case f.action == pass:
		case v == nil:
			if f.action == refuse {
				return ErrInline
			}
		default:
			if err := s.enter(f, v, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter looks at the value of a field that carries a length.
func (s *Scanner) enter(f field, v []byte, depth int) error {
	switch f.action {
	case refuse:
		if len(v) > 0 {
			return ErrInline
		}
	case descend:
		return s.walk(f.sub, v, depth)
	case open:
		return s.open(v, f.mode, depth)
	case keys:
		if sensitive.HoldsKeys(v) {
			return ErrInline
		}
	case pass:
	}
	return nil
}

// open looks into an Any.
func (s *Scanner) open(b []byte, in mode, depth int) error {
	if depth <= 0 {
		return errBytes
	}
	var url, value []byte
	for len(b) > 0 {
		num, v, rest, ok := next(b)
		if !ok {
			return errBytes
		}
		switch b = rest; {
		case v == nil:
		case num == 1:
			url = v
		case num == 2:
			value = v
		}
	}
	if len(url) == 0 && len(value) == 0 {
		return nil
	}
	l, err := layoutOf(s, url, in)
	if err != nil {
		return err
	}
	return s.walk(l, value, depth)
}

// next takes the first field of a message: its number, and its value if that has a length, else nil.
func next(b []byte) (num uint64, v, rest []byte, ok bool) {
	// Most tags and lengths have one byte.
	if len(b) > 1 && b[0] < 0x80 && protowire.Type(b[0]&7) == protowire.BytesType && b[1] < 0x80 && b[0] > 7 {
		end := 2 + int(b[1])
		if end > len(b) {
			return 0, nil, nil, false
		}
		return uint64(b[0] >> 3), b[2:end:end], b[end:], true
	}
	number, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, nil, nil, false
	}
	b = b[n:]
	if typ == protowire.BytesType {
		v, n = protowire.ConsumeBytes(b)
	} else {
		n = protowire.ConsumeFieldValue(number, typ, b)
	}
	if n < 0 {
		return 0, nil, nil, false
	}
	return uint64(number), v, b[n:], true
}

// isTLS says whether a message is of the packages of TLS contexts.
func isTLS(name protoreflect.FullName) bool {
	return strings.HasPrefix(string(name), "envoy.extensions.transport_sockets.tls.") || strings.HasPrefix(string(name), "envoy.api.v2.auth.")
}
