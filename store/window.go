package store

import (
	"errors"
	"io"
)

// window is a file that is read part by part, so that the memory that is needed does not grow with it.
type window struct {
	file file  // nil if there is none, which is as an empty one
	size int64 // of what is read of it; less once it turns out to be cut
	keep bool  // each part is read into memory of its own, and what was returned of it stays
	err  error // the first of reading, which ends the file

	off  int64 // of the part
	part []byte
}

// partSize is how much is read at once, unless a record is larger.
const partSize = 256 << 10

// at is so many bytes of the file, fewer at its end. They are good until the next call.
func (w *window) at(off, n int64) []byte {
	if n = min(n, w.size-off); n <= 0 {
		return nil
	}
	if from := off - w.off; from >= 0 && from+n <= int64(len(w.part)) {
		return w.part[from : from+n]
	}
	if size := min(max(n, partSize), w.size-off); w.keep || size > int64(cap(w.part)) {
		w.part = make([]byte, size)
	} else {
		w.part = w.part[:size]
	}
	got, err := w.file.ReadAt(w.part, off)
	w.off, w.part = off, w.part[:got]
	if err != nil {
		w.size = off + int64(got) // others may write it
		if !errors.Is(err, io.EOF) {
			w.err = err
		}
	}
	return w.part[:min(n, int64(got))]
}

// record is what [bodyAt] says of an offset.
func (w *window) record(off int64) (body []byte, size int64, ok bool) {
	b := w.at(off, headSize)
	if isHead(b) {
		b = w.at(off, headSize+int64(bodySize(b)))
	}
	return bodyAt(b)
}

// scan calls each for the bodies of the file with their places, and counts what is damaged.
func (w *window) scan(each func(off, size int64, body []byte) error) (damaged int) {
	for off := int64(0); off < w.size; {
		body, size, ok := w.record(off)
		if ok {
			ok = each(off, size, body) == nil
		}
		if !ok {
			damaged++
		}
		if size == 0 {
			size = w.next(off)
		}
		off += size
	}
	return damaged
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
