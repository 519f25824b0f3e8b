package wire

import "google.golang.org/protobuf/encoding/protowire"

// align returns a message, given in parts, in parts that hold whole fields: a field that
// lies across parts is copied into one of its own. A field that has no end is the last part.
func align(parts [][]byte) [][]byte {
	if len(parts) < 2 {
		return parts
	}
	m := message{after: parts}
	for _, part := range parts {
		m.left += len(part)
	}
	aligned := make([][]byte, 0, 2*len(parts))
	for m.more() {
		n := 0
		for n < len(m.part) {
			size := extent(m.part[n:])
			if size == 0 || size > len(m.part)-n {
				break
			}
			n += size
		}
		if n == 0 {
			aligned = append(aligned, m.field())
			continue
		}
		aligned = append(aligned, m.part[:n])
		m.skip(n)
	}
	return aligned
}

// message is what is left of a message that is given in parts.
type message struct {
	part  []byte
	after [][]byte
	left  int // bytes of all
}

func (m *message) skip(n int) { m.part, m.left = m.part[n:], m.left-n }

// more says whether anything is left; if so, part is not empty.
func (m *message) more() bool {
	for len(m.part) == 0 && len(m.after) > 0 {
		m.part, m.after = m.after[0], m.after[1:]
	}
	return len(m.part) > 0
}

// field takes the first field, or all if that has no end.
func (m *message) field() []byte {
	ahead := *m
	size := extent(ahead.take(maxHead))
	if size == 0 {
		size = m.left
	}
	return m.take(size)
}

// take takes the next bytes; fewer if the message ends before.
func (m *message) take(n int) []byte {
	n = min(n, m.left)
	taken := make([]byte, 0, n)
	for len(taken) < n && m.more() {
		k := min(n-len(taken), len(m.part))
		taken = append(taken, m.part[:k]...)
		m.skip(k)
	}
	return taken
}

// maxHead is the most that a tag and what follows it take, up to where a field's end is known.
const maxHead = 20

// extent is how many bytes the first field takes, of which not all need be there; 0 if that
// cannot be told.
func extent(b []byte) int {
	num, typ, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return 0
	}
	if typ == protowire.BytesType {
		size, n := protowire.ConsumeVarint(b[tag:])
		if n < 0 || size > maxSize {
			return 0
		}
		return tag + n + int(size)
	}
	n := protowire.ConsumeFieldValue(num, typ, b[tag:])
	if n < 0 {
		return 0
	}
	return tag + n
}

// maxSize is more than any field has.
const maxSize = 1 << 40
