package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// JSON writes each record as an object on a line of its own, in one call of Write.
type JSON struct {
	JSONOptions
	buffers sync.Pool // of *bytes.Buffer

	mu  sync.Mutex
	out io.Writer
}

// JSONOptions are the ways of writing JSON.
type JSONOptions struct {
	ShowSecrets bool // the contents of Secrets and keys, which are redacted otherwise
}

// NewJSON makes a printer of JSON.
func NewJSON(out io.Writer, o JSONOptions) *JSON {
	return &JSON{out: out, JSONOptions: o, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
}

// keptBuffer is how large a buffer is kept for the next record, in bytes.
const keptBuffer = 1 << 20

// Print implements [Printer]. A record that is large, and takes long, holds up no other.
func (j *JSON) Print(r Record) error {
	buf := j.buffers.Get().(*bytes.Buffer)
	buf.Reset()
	if u, ok := r.(Update); ok {
		u.Resource.options = resourcejson.Options{ShowSecrets: j.ShowSecrets}
		r = u
	}
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return err
	}
	line := escape(buf.Bytes())
	j.mu.Lock()
	_, err := j.out.Write(line)
	j.mu.Unlock()
	if buf.Cap() <= keptBuffer {
		j.buffers.Put(buf)
	}
	return err
}

// Harmless is text in which what does not show, but for ends of lines, is written as an escape.
func Harmless(text []byte) []byte {
	if !bytes.ContainsFunc(text, hiddenInJSON) && utf8.Valid(text) {
		return text
	}
	lines := strings.Split(string(text), "\n")
	for i, l := range lines {
		lines[i] = Clean(l)
	}
	return []byte(strings.Join(lines, "\n"))
}

// HarmlessJSON is JSON in which what does not show is written as its escape.
func HarmlessJSON(text []byte) []byte { return escape(text) }

// escape writes what does not show, such as what a terminal obeys or what turns the direction
// of text, as JSON's escapes. The encoder did so with what JSON demands; its own newlines stay.
func escape(text []byte) []byte {
	if !bytes.ContainsFunc(text, hiddenInJSON) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch high, low := utf16.EncodeRune(r); {
		case !hiddenInJSON(r):
			out = append(out, text[:n]...)
		case high != utf8.RuneError:
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[n:]
	}
	return out
}

func hiddenInJSON(r rune) bool { return r != '\n' && hidden(r) }
