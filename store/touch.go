package store

import "encoding/binary"

// touches is a record that says of others that they are good again, all of the same update: of those that
// begin in ranges of the file. When a program starts again and is sent what it had, that is one range.
type touches struct {
	record         // whose resource is for each range the varint of its distance to the one before and its length
	from, to int64 // the last range, which is not in the resource yet
	end      int64 // of the one before
}

// touchCost is how many bytes of a file take about as long to read as it takes to touch an entry.
const touchCost = 8

// add has an entry touched as a record says, and appends the touches before if they say otherwise.
func (t *touches) add(b []byte, r *record, e *entry) []byte {
	if t.updated != r.updated || t.expires != r.expires {
		b = t.flush(b)
		t.updated, t.expires = r.updated, r.expires
	}
	if e.off != t.to {
		t.next()
		t.from = e.off
	}
	t.to = e.off + int64(e.size)
	return b
}

// next ends the last range.
func (t *touches) next() {
	if t.to > 0 {
		t.resource = binary.AppendVarint(binary.AppendVarint(t.resource, t.from-t.end), t.to-t.from)
		t.end = t.to
	}
}

// flush appends the record, unless it says nothing.
func (t *touches) flush(b []byte) []byte {
	if t.next(); len(t.resource) > 0 {
		b = appendRecord(b, &t.record, "", "")
	}
	t.resource, t.from, t.to, t.end = t.resource[:0], 0, 0, 0
	return b
}

// touch takes in such a record. No file that was written here has some that would take long: it is
// written anew before.
func (s *section) touch(r *record) error {
	end := int64(0)
	for b := r.resource; len(b) > 0; {
		gap, n := binary.Varint(b)
		size, m := binary.Varint(b[max(0, n):])
		if n <= 0 || m <= 0 {
			return errRecord
		}
		b = b[n+m:]
		from := end + gap
		end = from + size
		for e := range s.within(from, end) {
			// H-10: a short record may speak of everything.
			if s.touched++; touchCost*s.touched > 4*(s.live+slack) {
				return errRecord
			}
			e.session, e.time, e.updated, e.expires = s.session, r.time, r.updated, r.expires
		}
	}
	return nil
}
