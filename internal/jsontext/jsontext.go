// Package jsontext makes JSON harmless to look at.
package jsontext

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible is JSON in which each character that does not show is written as its escape: what a terminal obeys, what turns
// the direction of text, what has no width. It stands for the same values. The white space of JSON stays, which has its
// place between values. Without such characters it is the text itself.
func Visible(text []byte) []byte {
	var out []byte
	done := 0 // of the text, in out
	for i := 0; i < len(text); {
		c := text[i]
		if ' ' <= c && c < 0x7f || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if !strconv.IsPrint(r) {
			out = escape(append(out, text[done:i]...), r)
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

func escape(out []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	for _, u := range utf16.AppendRune(make([]uint16, 0, 2), r) {
		out = append(out, '\\', 'u', digits[u>>12], digits[u>>8&0xf], digits[u>>4&0xf], digits[u&0xf])
	}
	return out
}
