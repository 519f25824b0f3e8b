package report

import (
	"bytes"
	"encoding/json"
	"io"
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
	_, err := j.out.Write(j.buf.Bytes())
	if j.buf.Cap() > keptBuffer {
		j.buf = bytes.Buffer{}
	}
	return err
}
