package xdstp

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// envoyName reads a name by Envoy's rules and writes it back with its parameters in order: the host ends at
// the first '/', the query begins at the first '?', an empty last parameter is none, and every part is decoded
// once. It is false for what Envoy refuses.
func envoyName(s string) (string, bool) {
	rest, ok := strings.CutPrefix(s, "xdstp://")
	host, path, hasPath := strings.Cut(rest, "/")
	path, query, _ := strings.Cut(path, "?")
	typ, id, _ := strings.Cut(path, "/")
	if !ok || !hasPath || typ == "" {
		return "", false
	}
	params := map[string]string{}
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		// The last one holds in what was received, where Envoy keeps the first (XDSTP-5).
		params[percentDecoded(key)] = percentDecoded(value)
	}
	var pairs []string
	for key, value := range params {
		pairs = append(pairs, percentEncoded(key, "%#[]&=")+"="+percentEncoded(value, "%#[]&="))
	}
	slices.Sort(pairs)
	out := "xdstp://" + percentEncoded(percentDecoded(host), "%/?#") + "/" + typ
	if id = percentEncoded(percentDecoded(id), "%:?#[]"); id != "" {
		out += "/" + id
	}
	if len(pairs) > 0 {
		out += "?" + strings.Join(pairs, "&")
	}
	return out, true
}

func percentDecoded(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		c, size := s[i], 0
		if c == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c, size = byte(n), 2
			}
		}
		b, i = append(b, c), i+size
	}
	return string(b)
}

func percentEncoded(s, reserved string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= '~' || strings.IndexByte(reserved, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Of names made at random this package makes what Envoy does, but for those whose authority holds a bare '?' or
// '#', which is none here, and a bare '#' in the type.
//
// spec: XDSTP-1 XDSTP-4
func TestAsEnvoyAtRandom(t *testing.T) {
	pieces := []string{"a", "b", "/", "/", "?", "#", "&", "=", "%", "%2F", "%3f", "%25", "%41", "%zz", "%23", ":", "[", "]", "~", "*", "+", " ", "\x01", "é", "%C3", "@", ".", ";", ","}
	r := rand.New(rand.NewSource(1))
	accepted := 0
	for range 100_000 {
		s := "xdstp://"
		for range r.Intn(14) {
			s += pieces[r.Intn(len(pieces))]
		}
		host, path, _ := strings.Cut(s[len("xdstp://"):], "/")
		typ, _, _ := strings.Cut(path, "/")
		typ, _, _ = strings.Cut(typ, "?")
		want, ok := envoyName(s)
		if strings.ContainsAny(host, "?#") || strings.Contains(typ, "#") {
			ok = false
		}
		n, err := ParseReceived(s)
		switch {
		case ok != (err == nil):
			t.Fatalf("%q: %v; accepted by Envoy: %v", s, err, ok)
		case ok && n.String() != want:
			t.Fatalf("%q is %q, in Envoy %q", s, n, want)
		case ok:
			accepted++
		}
	}
	if accepted < 10_000 {
		t.Errorf("only %d names were accepted", accepted)
	}
}
