package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON writes each record as an object on a line of its own, in one call of Write.
type JSON struct {
	out io.Writer
	buf bytes.Buffer
}

// NewJSON makes a printer of JSON.
func NewJSON(out io.Writer) *JSON { return &JSON{out: out} }

// keptBuffer is how large a buffer is kept for the next record, in bytes.
const keptBuffer = 1 << 20

// Print implements [Printer].
func (j *JSON) Print(r Record) error {
	j.buf.Reset()
	enc := json.NewEncoder(&j.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return err
	}
	_, err := j.out.Write(escape(j.buf.Bytes()))
	if j.buf.Cap() > keptBuffer {
		j.buf = bytes.Buffer{}
	}
	return err
}

// escape writes what does not show, such as what a terminal obeys or what turns the direction
// of text, as JSON's escapes. The encoder did so with what JSON demands.
func escape(line []byte) []byte {
	text := line[:len(line)-1] // a newline ends it
	if !bytes.ContainsFunc(text, hidden) {
		return line
	}
	out := make([]byte, 0, len(line)+len(line)/8)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch high, low := utf16.EncodeRune(r); {
		case !hidden(r):
			out = append(out, text[:n]...)
		case high != utf8.RuneError:
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[n:]
	}
	return append(out, '\n')
}
