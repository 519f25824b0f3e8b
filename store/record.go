package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A file is records, one after another. A record has a head of 16 bytes: a mark, the length of the
// body, a checksum of the body and one of the head so far. So a body that was damaged costs itself
// alone, and after a head that was, the next is found by its mark.
const (
	mark     = 0x6b6c5c9d
	headSize = 16
	maxRest  = 64 // of a record, beside name, server and resource
	maxBody  = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordKind is the first byte of a body.
type recordKind uint8

const (
	recordSection recordKind = iota + 1 // the first of a file: which section it is, as JSON
	recordPut                           // a resource
	recordForget                        // there is no such resource
	recordTouch                         // resources are still good, as they were put; see touches
	recordBegin                         // a process begins to write
	recordAlive                         // all that was put or touched since the last begin is still good
)

// record is the body of one, but of a section.
type record struct {
	kind     recordKind
	time     int64 // when it was good, in Unix nanoseconds
	updated  int64
	expires  int64 // 0 for never
	name     []byte
	server   []byte
	resource []byte
}

// begin appends room for the head of a record, whose body comes next.
func begin(b []byte) []byte { return append(b, make([]byte, headSize)...) }

// seal writes the head of the record that begins at an offset and is the last.
func seal(b []byte, from int) {
	head, body := b[from:from+headSize], b[from+headSize:]
	binary.LittleEndian.PutUint32(head, mark)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[8:], crc32.Checksum(body, castagnoli))
	binary.LittleEndian.PutUint32(head[12:], crc32.Checksum(head[:12], castagnoli))
}

// appendSection appends the record that a file begins with.
func appendSection(b, description []byte) []byte {
	from := len(b)
	b = append(begin(b), byte(recordSection))
	b = append(b, description...)
	seal(b, from)
	return b
}

// appendRecord appends another record.
func appendRecord[T string | []byte](b []byte, r *record, name, server T) []byte {
	from := len(b)
	b = append(begin(b), byte(r.kind))
	b = binary.AppendVarint(b, r.time)
	b = binary.AppendVarint(b, r.updated)
	b = binary.AppendVarint(b, r.expires)
	b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	b = append(binary.AppendUvarint(b, uint64(len(server))), server...)
	b = append(b, r.resource...)
	seal(b, from)
	return b
}

var errRecord = errors.New("not a record")

// parse reads a body, of which the record is parts.
func (r *record) parse(b []byte) error {
	*r = record{kind: recordKind(b[0])}
	b = b[1:]
	for _, to := range []*int64{&r.time, &r.updated, &r.expires} {
		v, n := binary.Varint(b)
		if n <= 0 {
			return errRecord
		}
		*to, b = v, b[n:]
	}
	for _, to := range []*[]byte{&r.name, &r.server} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return errRecord
		}
		*to, b = b[n:n+int(size)], b[n+int(size):]
	}
	r.resource = b
	return nil
}

// isHead says whether a record begins at the front of some bytes.
func isHead(b []byte) bool {
	return len(b) >= headSize && binary.LittleEndian.Uint32(b) == mark && binary.LittleEndian.Uint32(b[12:]) == crc32.Checksum(b[:12], castagnoli)
}

// bodySize is what the head at the front of some bytes says.
func bodySize(b []byte) uint32 { return binary.LittleEndian.Uint32(b[4:]) }

// bodyAt is the body of the record at the front of some bytes; ok is false if there is none that is
// whole, and then size is how much to pass over: 0 if the head is damaged.
func bodyAt(b []byte) (body []byte, size int64, ok bool) {
	if !isHead(b) {
		return nil, 0, false
	}
	n := int(bodySize(b))
	switch {
	case n == 0:
		return nil, headSize, false
	case n > maxBody || n > len(b)-headSize:
		return nil, int64(len(b)), false
	}
	body = b[headSize : headSize+n]
	return body, headSize + int64(n), binary.LittleEndian.Uint32(b[8:]) == crc32.Checksum(body, castagnoli)
}
