package store

import (
	"errors"
	"io"
	"sort"
)

// window is a file that is read part by part, so that the memory that is needed does not grow with it.
type window struct {
	file file  // nil if there is none, which is as an empty one
	size int64 // of what is read of it; less once it turns out to be cut
	keep bool  // each part has memory of its own, which stays and is read once; they are read in order
	err  error // the first of reading, which ends the file
	// ahead is how much is read at once, unless a record is larger.
	ahead int64

	part         // that was read last, or found among those that are kept
	parts []part // that are kept, by offset
}

// part is some bytes of a file, and where they begin.
type part struct {
	off   int64
	bytes []byte
}

// has says whether bytes of the file are in the part.
func (p *part) has(off, n int64) bool { return off >= p.off && off+n <= p.off+int64(len(p.bytes)) }

// partSize is how much is read at once where most is needed.
const partSize = 256 << 10

// at is so many bytes of the file, fewer at its end. They are good until the next call.
func (w *window) at(off, n int64) []byte {
	if n = min(n, w.size-off); n <= 0 {
		return nil
	}
	if !w.has(off, n) {
		if i := sort.Search(len(w.parts), func(i int) bool { return w.parts[i].off > off }) - 1; i >= 0 {
			w.part = w.parts[i]
		}
	}
	if w.has(off, n) {
		return w.bytes[off-w.off:][:n]
	}
	if size := min(max(n, w.ahead), w.size-off); w.keep || size > int64(cap(w.bytes)) {
		w.bytes = make([]byte, size)
	} else {
		w.bytes = w.bytes[:size]
	}
	got, err := w.file.ReadAt(w.bytes, off)
	w.off, w.bytes = off, w.bytes[:got]
	if w.keep {
		w.parts = append(w.parts, w.part)
	}
	if err != nil {
		w.size = off + int64(got) // others may write it
		if !errors.Is(err, io.EOF) {
			w.err = err
		}
	}
	return w.bytes[:min(n, int64(got))]
}

// record is what [bodyAt] says of an offset.
func (w *window) record(off int64) (body []byte, size int64, ok bool) {
	b := w.at(off, headSize)
	if isHead(b) {
		b = w.at(off, headSize+int64(bodySize(b)))
	}
	return bodyAt(b)
}

// scan calls each for the bodies of the file with their places. It counts what is damaged, and says where the
// last record ends that is not, and whether something before it is.
func (w *window) scan(each func(off, size int64, body []byte) error) (damaged int, inside bool, end int64) {
	for off := int64(0); off < w.size; {
		body, size, ok := w.record(off)
		if ok {
			ok = each(off, size, body) == nil
		}
		if ok {
			inside, end = damaged > 0, off+size
		} else {
			damaged++
		}
		if size == 0 {
			size = w.next(off)
		}
		off += size
	}
	return damaged, inside, end
}

// next is how far it is to the next head, behind the first byte at an offset.
func (w *window) next(off int64) int64 {
	for from := off + 1; ; {
		b := w.at(from, partSize)
		if len(b) < headSize {
			return w.size - off
		}
		for i := range len(b) - headSize + 1 {
			if isHead(b[i:]) {
				return from + int64(i) - off
			}
		}
		from += int64(len(b) - headSize + 1)
	}
}

func (w *window) close() {
	if w.file != nil {
		_ = w.file.Close()
	}
}
