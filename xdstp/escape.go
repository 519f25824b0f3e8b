package xdstp

import "strings"

// What Envoy escapes in each part of a name. The type segment is never escaped.
var (
	authoritySet = newSet("%/?#")
	idSet        = newSet("%:?#[]")
	paramSet     = newSet("%#[]&=")
	directiveSet = newSet("%#[],")
)

// set says which bytes must be escaped: bit b for each byte below 128. Every part escapes
// control characters and all above 127, and those of Envoy '~'.
type set [2]uint64

func newSet(reserved string) set {
	s := set{1<<' ' - 1, 3 << 62} // '~' and DEL
	for _, c := range []byte(reserved) {
		s[c>>6] |= 1 << (c & 63)
	}
	return s
}

// uriSet is what gRPC escapes in the path of a name: all but the path characters of RFC 3986,
// section 3.3.
var uriSet = pathSet()

func pathSet() set {
	s := set{^uint64(0), ^uint64(0)}
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@/") {
		s[c>>6] &^= 1 << (c & 63)
	}
	return s
}

func (s set) has(c byte) bool { return c >= 128 || s[c>>6]&(1<<(c&63)) != 0 }

// escape appends s with the bytes of the set as %XX.
func escape(b []byte, s string, reserved set) []byte {
	const hex = "0123456789ABCDEF"
	done := 0
	for i := range len(s) {
		if c := s[i]; reserved.has(c) {
			b = append(b, s[done:i]...)
			b = append(b, '%', hex[c>>4], hex[c&15])
			done = i + 1
		}
	}
	return append(b, s[done:]...)
}

// unescape turns each %XX into its byte, once. A '%' without two hex digits stays as it
// is. The result may be any bytes.
func unescape(s string) string {
	first := strings.IndexByte(s, '%')
	if first < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)), s[:first]...)
	for i := first; i < len(s); i++ {
		if c, ok := escapedByte(s[i:]); ok {
			b = append(b, c)
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// escapedByte reads the %XX with which s may begin.
func escapedByte(s string) (byte, bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	hi, ok1 := digit(s[1])
	lo, ok2 := digit(s[2])
	return hi<<4 | lo, ok1 && ok2
}

func digit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
