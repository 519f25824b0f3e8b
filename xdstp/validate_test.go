package xdstp

import (
	"strings"
	"testing"
)

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
