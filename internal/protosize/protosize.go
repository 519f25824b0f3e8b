// Package protosize says how much memory a message takes once it is decoded, by a walk over its
// bytes that builds nothing: an empty message of two bytes takes some hundred.
package protosize

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Bounds of a decoded message, in bytes of memory.
const (
	// Most is what a message may take however small it is; one that is larger than 16 MiB may take
	// growth times its own size. Messages inside an Any count too, where their types are linked.
	Most = 128 << 20

	growth = 8
	// sure is how large a message may be that cannot take more: no message that users send takes
	// more than 400 times its size.
	sure = 256 << 10
	// maxDepth is how deep the walk goes; protobuf itself stops there.
	maxDepth = 10_000
	// maxOpened is how deep Any may be nested for what is inside to count.
	maxOpened = 16
)

// What parts take.
const (
	headerSize  = 40 // of a message: its state, its size and its unknown fields
	scalarSize  = 8
	textSize    = 16 // a string; the bytes themselves beside it
	listSize    = 24
	pointerSize = 8
	elementSize = 16 // a pointer in a list that grows, with what it grew out of
	entrySize   = 64 // an entry of a map
)

// Error says that a message would take more than it may.
type Error struct {
	Size  int // of the message, in bytes
	Limit int // in bytes of memory
}

func (e *Error) Error() string {
	return fmt.Sprintf("a message of %d bytes has so many parts that to decode it takes more than the limit of %d bytes", e.Size, e.Limit)
}

// Check is nil if decoding the bytes of a message takes what it may, or if they are no such
// message, as proto.Unmarshal will say.
func Check(b []byte, m protoreflect.MessageDescriptor) error {
	if len(b) <= sure {
		return nil
	}
	limit := max(Most, growth*len(b))
	w := walk{left: limit, sizes: map[protoreflect.FullName]int{}}
	// H-5: what a resource expands to is bounded.
	if w.message(b, m, maxDepth, maxOpened); w.left < 0 {
		return &Error{len(b), limit}
	}
	return nil
}

// walk counts down what may still be taken, and ends where that is less than nothing.
type walk struct {
	left  int
	sizes map[protoreflect.FullName]int // of empty messages
}

func (w *walk) message(b []byte, m protoreflect.MessageDescriptor, depth, opened int) {
	w.left -= w.sizeOf(m)
	var url string
	fields := m.Fields()
	for len(b) > 0 && w.left >= 0 && depth > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return
		}
		value := b[n : n+size]
		b = b[n+size:]
		if typ == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		fd := fields.ByNumber(num)
		switch {
		case fd == nil:
			w.left -= n + size // an unknown field is kept
		case typ != protowire.BytesType:
			if fd.IsList() {
				w.left -= elementSize
			}
		case m.FullName() == "google.protobuf.Any" && num == 1:
			url = string(value)
		case m.FullName() == "google.protobuf.Any" && num == 2:
			w.left -= len(value)
			w.inside(url, value, depth, opened)
		default:
			w.field(value, fd, depth, opened)
		}
	}
}

// inside counts what an Any holds, which is decoded by whoever opens it.
func (w *walk) inside(url string, value []byte, depth, opened int) {
	if opened == 0 {
		return
	}
	if mt, err := protoregistry.GlobalTypes.FindMessageByURL(url); err == nil {
		w.message(value, mt.Descriptor(), depth-1, opened-1)
	}
}

// field counts a value that carries its length.
func (w *walk) field(value []byte, fd protoreflect.FieldDescriptor, depth, opened int) {
	switch {
	case fd.IsMap():
		w.left -= entrySize
	case fd.IsList():
		w.left -= elementSize
	case fd.ContainingOneof() != nil:
		w.left -= textSize // the wrapper of the value
	}
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		w.message(value, fd.Message(), depth-1, opened)
	case protoreflect.StringKind, protoreflect.BytesKind:
		w.left -= len(value)
	default: // packed elements, of which the shortest have one byte
		w.left -= scalarSize * len(value)
	}
}

// sizeOf is what an empty message takes.
func (w *walk) sizeOf(m protoreflect.MessageDescriptor) int {
	if size, ok := w.sizes[m.FullName()]; ok {
		return size
	}
	size := headerSize
	fields := m.Fields()
	for i := range fields.Len() {
		switch fd := fields.Get(i); {
		case fd.ContainingOneof() != nil && !fd.HasOptionalKeyword():
		case fd.IsMap(), fd.Message() != nil && !fd.IsList():
			size += pointerSize
		case fd.IsList(), fd.Kind() == protoreflect.BytesKind:
			size += listSize
		case fd.Kind() == protoreflect.StringKind:
			size += textSize
		default:
			size += scalarSize
		}
	}
	size += textSize * m.Oneofs().Len()
	w.sizes[m.FullName()] = size
	return size
}
