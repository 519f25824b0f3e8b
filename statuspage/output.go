package statuspage

import (
	"bufio"
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/internal/jsontext"
)

// writeAbsence writes that what was asked for is not there.
func writeAbsence(w http.ResponseWriter, what string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	writeJSON(w, map[string]string{"error": what})
}

// writeJSON writes a value that is small.
func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	text, _ := json.MarshalIndent(v, "", "  ")           // which has only what can be written
	_, _ = w.Write(append(jsontext.Visible(text), '\n')) // the reader may be gone
}

// output is JSON that is written piece by piece. After an error it writes nothing.
type output struct {
	w       *bufio.Writer
	scratch []byte
	err     error
}

func newStream(w http.ResponseWriter) *output {
	w.Header().Set("Content-Type", "application/json")
	return &output{w: bufio.NewWriterSize(w, 32<<10)}
}

func (o *output) text(s string) {
	if o.err == nil {
		_, o.err = o.w.WriteString(s)
	}
}

func (o *output) raw(b []byte) {
	if o.err == nil {
		_, o.err = o.w.Write(b)
	}
}

func (o *output) flush() {
	if o.err == nil {
		o.err = o.w.Flush()
	}
}

// string writes a string. Most need no escapes.
func (o *output) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f {
			b, _ := json.Marshal(s) // a string can be encoded
			o.raw(jsontext.Visible(b))
			return
		}
	}
	o.text(`"`)
	o.text(s)
	o.text(`"`)
}

func (o *output) name(name string) {
	o.text(`,"`)
	o.text(name)
	o.text(`":`)
}

func (o *output) field(name, value string) {
	o.name(name)
	o.string(value)
}

func (o *output) optional(name, value string) {
	if value != "" {
		o.field(name, value)
	}
}

func (o *output) time(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	o.name(name)
	o.scratch = append(t.AppendFormat(append(o.scratch[:0], '"'), time.RFC3339Nano), '"')
	o.raw(o.scratch)
}
