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

func TestNameValidate(t *testing.T) {
	tests := []struct {
		name   Name
		part   Part
		offset int
		reason string
	}{
		{Name{}, PartType, 9, "empty"},
		{Name{Authority: "a", ID: "x"}, PartType, 10, "empty"},
		{Name{Authority: "a/b", Type: "T/U", ID: "x"}, PartType, 15, "'/'"},
		{Name{Type: "T?"}, PartType, 10, "'?'"},
		{Name{Type: "#T"}, PartType, 9, "'#'"},
		{Name{Type: "T", Params: []Param{{"a", "1"}, {"b", ""}, {"a", "2"}}}, PartParams, 15, "repeated"},
	}
	for _, tt := range tests {
		checkFault(t, tt.name.Validate(), tt.name.String(), tt.part, tt.offset, tt.reason)
	}
	good := Name{Authority: "a#?/\xff", Type: "T", ID: "/?#\x00", Params: []Param{{"", ""}, {"&", "="}}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if n := mustParse(t, good.String()); !n.Equal(good) {
		t.Errorf("%#v is read back as %#v", good, n)
	}
}

func TestLocatorValidate(t *testing.T) {
	name := Name{Authority: "b", Type: "T"}
	alt := func(l Locator) Directive { return Directive{Alt: &l} }
	tests := []struct {
		what    string
		locator Locator
		part    Part
		offset  int
		reason  string
	}{
		{"no type", Locator{}, PartType, 9, "empty"},
		{"a scheme that is none", Locator{Scheme: 9, Name: name}, PartScheme, 0, "none of"},
		{"a type with a slash", Locator{Scheme: SchemeHTTP, Name: Name{Authority: "b", Type: "a/b"}}, PartType, 10, "'/'"},
		{"a file without an ID", Locator{Scheme: SchemeFile}, PartID, 8, "empty"},
		{"a file with a type", Locator{Scheme: SchemeFile, Name: Name{Type: "T", ID: "x"}}, PartAuthority, 7, "nothing but"},
		{"two entries", Locator{Name: name, Directives: []Directive{{Entry: "a"}, {Entry: "b"}}}, PartDirectives, 20, "repeated"},
		{"a bad alternative", Locator{Name: name, Directives: []Directive{{Entry: "a"}, alt(Locator{})}}, PartDirectives, 20, "alternative"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			checkFault(t, tt.locator.Validate(), tt.locator.String(), tt.part, tt.offset, tt.reason)
		})
	}
}

// A locator that holds itself is printed to the depth that may be read, and refused.
func TestLocatorRing(t *testing.T) {
	ring := Locator{Name: Name{Type: "T"}}
	ring.Directives = []Directive{{Alt: &ring}, {Entry: "e"}}
	l, err := ParseLocator(ring.String())
	if err != nil {
		t.Fatal(err)
	}
	depth := 0
	for alt := l.Alt(); alt != nil; alt = alt.Alt() {
		depth++
	}
	if depth != maxAltDepth {
		t.Errorf("printed %d deep, want %d", depth, maxAltDepth)
	}
	if err := ring.Validate(); err == nil || !strings.Contains(err.Error(), tooDeep) {
		t.Errorf("error %v, want one that says too deep", err)
	}
	if m, err := ring.Proto(); err == nil {
		t.Errorf("a ring became %v", m)
	}
	if err := ring.CheckReserved(); err != nil {
		t.Error(err)
	}
}
