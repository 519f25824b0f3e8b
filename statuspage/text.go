package statuspage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clip cuts a text after some bytes, and shares nothing with it where it is cut.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// indented is JSON in indented lines, which end once they are longer than most: where values lie in each other
// thousands deep, all the lines would be thousands of times as long as the JSON.
func indented(text []byte, most int) []byte {
	var lines bytes.Buffer
	if json.Indent(&lines, text, "", "") != nil { // it is deeper than encoding/json goes
		return text
	}
	var out []byte
	depth := 0
	for line := range bytes.Lines(lines.Bytes()) {
		if len(out) > most {
			break
		}
		if line[0] == '}' || line[0] == ']' {
			depth--
		}
		out = append(append(out, bytes.Repeat([]byte("  "), depth)...), line...)
		if line = bytes.TrimSuffix(line, []byte("\n")); bytes.HasSuffix(line, []byte("{")) || bytes.HasSuffix(line, []byte("[")) {
			depth++
		}
	}
	return out
}

// plain is a text of a server's as a page shows it: of bounded length, and without characters
// that cannot be seen or turn others round.
func plain(most int, s string) string {
	full := len(s)
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, clip(s, most))
	if full > most {
		s = fmt.Sprintf("%s (%s)", s, bytesText(full))
	}
	return s
}

// short is a type URL without what all have in common.
func short(typeURL string) string {
	name := typeURL[strings.LastIndexByte(typeURL, '/')+1:]
	return name[strings.LastIndexByte(name, '.')+1:]
}

// bytesText is a number of bytes, to three digits.
func bytesText(n int) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n), ""
	for _, unit = range []string{"KiB", "MiB", "GiB"} {
		if f /= 1024; f < 1000 {
			break
		}
	}
	if f < 10 {
		return fmt.Sprintf("%.1f %s", f, unit)
	}
	return fmt.Sprintf("%.0f %s", f, unit)
}

// age is how long ago something was, in the two largest units.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// number is a count with a thin space before each three digits.
func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
