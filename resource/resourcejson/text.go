package resourcejson

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/jsontext"
)

func (w *Writer) byte(c byte)  { w.buf = append(w.buf, c) }
func (w *Writer) raw(s string) { w.buf = append(w.buf, s...) }

// appender is a writer for an encoder.
type appender struct{ *Writer }

func (a appender) Write(p []byte) (int, error) {
	a.buf = append(a.buf, p...)
	return len(p), nil
}

// text writes a string without the escapes that only HTML needs, and with those that a terminal does.
func text[T string | []byte](w *Writer, s T) {
	if isPlain(s) { // most are
		w.byte('"')
		w.buf = append(w.buf, s...)
		w.byte('"')
		return
	}
	begin := len(w.buf)
	enc := json.NewEncoder(appender{w})
	enc.SetEscapeHTML(false)
	_ = enc.Encode(string(s)) // a string can be encoded, and a buffer written to
	w.buf = w.buf[:len(w.buf)-len("\n")]
	w.buf = append(w.buf[:begin], jsontext.Visible(w.buf[begin:])...)
}

// isPlain says that a string needs no escapes.
func isPlain[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (w *Writer) base64(b []byte) {
	w.byte('"')
	w.buf = base64.StdEncoding.AppendEncode(w.buf, b)
	w.byte('"')
}

func (w *Writer) quoted(n int64) {
	w.byte('"')
	w.buf = strconv.AppendInt(w.buf, n, 10)
	w.byte('"')
}

// enum writes the name of a value, or its number where it has none.
func (w *Writer) enum(d protoreflect.EnumDescriptor, n protoreflect.EnumNumber) {
	switch vd := d.Values().ByNumber(n); {
	case d.FullName() == "google.protobuf.NullValue":
		w.raw("null")
	case vd != nil:
		text(w, string(vd.Name()))
	default:
		w.buf = strconv.AppendInt(w.buf, int64(n), 10)
	}
}

func (w *Writer) float(f float64, bits int) {
	switch {
	case math.IsNaN(f):
		text(w, "NaN")
	case math.IsInf(f, 0):
		text(w, map[bool]string{true: "Infinity", false: "-Infinity"}[f > 0])
	case bits == 32:
		b, _ := json.Marshal(float32(f)) // it is finite
		w.buf = append(w.buf, b...)
	default:
		b, _ := json.Marshal(f)
		w.buf = append(w.buf, b...)
	}
}
