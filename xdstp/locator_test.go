package xdstp

import (
	"errors"
	"strings"
	"testing"
)

// spec: ENTRY-1 XDSTP-6
func TestParseLocatorErrors(t *testing.T) {
	tests := []struct {
		input  string
		part   Part
		offset int
		reason string
	}{
		{"", PartScheme, 0, "none of"},
		{"https://a/T/x", PartScheme, 0, "none of"},
		{"http:/a/T/x", PartScheme, 5, "//"},
		{"http://a", PartType, 8, "missing"},
		{"xdstp://a#entry=b/T", PartType, 9, "missing"},
		{"xdstp://a/#entry=x", PartType, 10, "empty"},
		{"xdstp://a/T/x?k&k#entry=x", PartParams, 16, "repeated"},
		{"xdstp://a/T/x#", PartDirectives, 14, "neither"},
		{"xdstp://a/T/x#entry", PartDirectives, 14, "neither"},
		{"xdstp://a/T/x#entry=x,", PartDirectives, 22, "neither"},
		{"xdstp://a/T/x#Entry=x", PartDirectives, 14, "neither"},
		{"xdstp://a/T/x#entry=x,entry=y", PartDirectives, 22, "repeated"},
		{"xdstp://a/T/x#alt=xdstp:///T,alt=xdstp:///T", PartDirectives, 29, "repeated"},
		{"file:/x", PartScheme, 5, "//"},
		{"file://", PartAuthority, 7, "has none"},
		{"file://host/x", PartAuthority, 7, "has none"},
		{"file:///#entry=x", PartID, 8, "empty"},
	}
	for _, tt := range tests {
		t.Run(tt.input, func(t *testing.T) {
			_, err := ParseLocator(tt.input)
			checkFault(t, err, tt.input, tt.part, tt.offset, tt.reason)
		})
	}
}

// The fault of an alternative is found inside the fault of the whole.
func TestParseLocatorBadAlternative(t *testing.T) {
	input := "xdstp://a/T/x#entry=y,alt=xdstp://b%23entry=z"
	_, err := ParseLocator(input)
	checkFault(t, err, input, PartDirectives, 22, "alternative")
	checkFault(t, errors.Unwrap(err), "xdstp://b#entry=z", PartType, 9, "missing")
	if !strings.Contains(err.Error(), "type at byte 9") {
		t.Errorf("error %q does not tell the inner fault", err)
	}
}

func TestParseLocatorDepth(t *testing.T) {
	nest := func(depth int) string { return strings.Repeat("xdstp:///T#alt=", depth) + "xdstp:///T" }
	l, err := ParseLocator(nest(maxAltDepth))
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseLocator(l.String())
	if err != nil || !again.Equal(l) {
		t.Errorf("%s is read back as %s, %v", l, again, err)
	}
	if _, err := ParseLocator(nest(maxAltDepth + 1)); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("error %v, want one that says too deep", err)
	}
}

func TestLocatorCanonical(t *testing.T) {
	tests := []struct{ input, want string }{
		{"xdstp://a/T/x?b=1&a=1#entry=e", "xdstp://a/T/x?a=1&b=1#entry=e"},
		{"xdstp://a/T/x?a=1#entry=", "xdstp://a/T/x?a=1#entry="},
		{"xdstp://a/T/foo/*?a=1", "xdstp://a/T/foo/*?a=1"},
		{"xdstp://a/T/x#alt=http://b/U/y", "xdstp://a/T/x#alt=http://b/U/y"},
		{"xdstp://a/T/x#alt=xdstp://b/U/y#entry=z", "xdstp://a/T/x#alt=xdstp://b/U/y%23entry=z"},
		{"file:///a:b?c", "file:///a%3Ab%3Fc"},
		{"file:////a", "file:////a"},
	}
	for _, tt := range tests {
		l, err := ParseLocator(tt.input)
		if err != nil {
			t.Errorf("ParseLocator(%q): %v", tt.input, err)
			continue
		}
		if got := l.String(); got != tt.want {
			t.Errorf("%q is %q, want %q", tt.input, got, tt.want)
		}
	}
}

func TestLocatorEqual(t *testing.T) {
	parse := func(url string) Locator {
		l, err := ParseLocator(url)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	a := parse("xdstp://a/T/x?k=1&l=2#entry=e")
	if b := parse("xdstp://a/T/x?l=2&k=1#entry=%65"); !a.Equal(b) {
		t.Errorf("%s and %s are not equal", a, b)
	}
	for _, other := range []string{"http://a/T/x?k=1&l=2#entry=e", "xdstp://a/T/x?k=1&l=2", "xdstp://a/T/x?k=1#entry=e"} {
		if b := parse(other); a.Equal(b) {
			t.Errorf("%s and %s are equal", a, b)
		}
	}
}

func TestSchemeString(t *testing.T) {
	for s, want := range map[Scheme]string{SchemeXDSTP: "xdstp", SchemeHTTP: "http", SchemeFile: "file", 9: "unknown"} {
		if got := s.String(); got != want {
			t.Errorf("scheme %d is %q, want %q", s, got, want)
		}
	}
}
