package xdstp

import (
	"errors"
	"strings"
	"testing"
)

// spec: XDSTP-2
func TestParseURN(t *testing.T) {
	for _, name := range []string{"xdstp://a/T/x", "xdstp:///T", "xdstp://a/T/x%23y?a=%23", "xdstp://a/T/*/x", "xdstp://a/T/foo*"} {
		n, err := ParseURN(name)
		if err != nil || !n.Equal(mustParse(t, name)) {
			t.Errorf("ParseURN(%q) = %v, %v", name, n, err)
		}
	}
	tests := []struct {
		name   string
		part   Part
		offset int
		reason string
	}{
		{"x", PartScheme, 0, "xdstp:"},
		{"http://a/T/x", PartScheme, 0, "xdstp:"},
		{"xdstp://a", PartType, 9, "missing"},
		{"xdstp://a/T/x#entry=y", PartDirectives, 13, "has none"},
		{"xdstp://a/T/x?a=b#", PartDirectives, 17, "has none"},
		{"xdstp://a/T/*", PartID, 12, "glob"},
		{"xdstp://a/T/foo/*?a=b", PartID, 16, "glob"},
		{"xdstp://a/T/foo/%2A?a=b", PartID, 16, "glob"},
		{"xdstp://a/T/foo%2f%2a", PartID, 18, "glob"},
	}
	for _, tt := range tests {
		_, err := ParseURN(tt.name)
		checkFault(t, err, tt.name, tt.part, tt.offset, tt.reason)
	}
}

// spec: XDSTP-2
func TestLocatorURN(t *testing.T) {
	tests := []struct{ url, want string }{
		{"xdstp://a/T/x", "xdstp://a/T/x"},
		{"xdstp://a/T/x?b=1&a=2#entry=y", "xdstp://a/T/x?a=2&b=1"},
		{"xdstp://a/T/x#alt=xdstp://b/T/y%23entry=z,entry=e", "xdstp://a/T/x"},
		{"xdstp://a/T/*?a=b#entry=y", ""},
		{"http://a/T/x", ""},
		{"file:///x", ""},
	}
	for _, tt := range tests {
		l, err := ParseLocator(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		n, err := l.URN()
		if tt.want == "" {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("the URN of %s is %s, %v; want an error", tt.url, n, err)
			}
			continue
		}
		if err != nil || n.String() != tt.want || strings.Contains(n.String(), "#") {
			t.Errorf("the URN of %s is %s, %v; want %s", tt.url, n, err, tt.want)
		}
	}
}

func TestDirectiveGetters(t *testing.T) {
	tests := []struct {
		url, alt, entry string
		ok              bool
	}{
		{"xdstp://a/T/x", "", "", false},
		{"xdstp://a/T/x#entry=", "", "", true},
		{"xdstp://a/T/x#entry=y,alt=xdstp://b/T/z", "xdstp://b/T/z", "y", true},
		{"xdstp://a/T/x#alt=xdstp://b/T/z%23entry=y", "xdstp://b/T/z#entry=y", "", false},
	}
	for _, tt := range tests {
		l, err := ParseLocator(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		alt := ""
		if a := l.Alt(); a != nil {
			alt = a.String()
		}
		if entry, ok := l.Entry(); alt != tt.alt || entry != tt.entry || ok != tt.ok {
			t.Errorf("%s: alternative %q, entry %q, %v; want %q, %q, %v", tt.url, alt, entry, ok, tt.alt, tt.entry, tt.ok)
		}
	}
}
