package xdstp

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func TestParseErrors(t *testing.T) {
	tests := []struct {
		input  string
		part   Part
		offset int
		reason string
	}{
		{"", PartScheme, 0, "xdstp:"},
		{"backend", PartScheme, 0, "xdstp:"},
		{"XDSTP://a/T/x", PartScheme, 0, "xdstp:"},
		{"xdstp:", PartScheme, 6, "//"},
		{"xdstp:/a/T", PartScheme, 6, "//"},
		{"xdstp://", PartType, 8, "missing"},
		{"xdstp://foo", PartType, 11, "missing"},
		{"xdstp://foo?a=b/T/x", PartType, 11, "missing"},
		{"xdstp://foo#a/T/x", PartType, 11, "missing"},
		{"xdstp:///", PartType, 9, "empty"},
		{"xdstp://foo//x", PartType, 12, "empty"},
		{"xdstp://foo/?a=b", PartType, 12, "empty"},
		{"xdstp://foo/T#x/y", PartType, 13, "'#'"},
		{"xdstp://a/T/x?k=1&k=2", PartParams, 18, "repeated"},
		{"xdstp://a/T/x?k=1&b=&%6B=1", PartParams, 21, "repeated"},
		{"xdstp://a/T/x?&&", PartParams, 15, "repeated"},
	}
	for _, tt := range tests {
		t.Run(tt.input, func(t *testing.T) {
			_, err := Parse(tt.input)
			checkFault(t, err, tt.input, tt.part, tt.offset, tt.reason)
		})
	}
}

func checkFault(t *testing.T, err error, input string, part Part, offset int, reason string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error %v, want an *Error", err)
	}
	if e.Input != input || e.Part != part || e.Offset != offset || !strings.Contains(e.Reason, reason) {
		t.Errorf("got %q: %s at %d: %q; want %q: %s at %d: …%s…",
			e.Input, e.Part, e.Offset, e.Reason, input, part, offset, reason)
	}
}

func TestErrorText(t *testing.T) {
	_, err := Parse("xdstp://foo//x")
	want := `xdstp: "xdstp://foo//x": type at byte 12: is empty`
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

// spec: XDSTP-4
func TestEqualAndCanonical(t *testing.T) {
	tests := []struct {
		a, b  string
		equal bool
	}{
		{"xdstp://a/T/x?k=1&l=2", "xdstp://a/T/x?l=2&k=1", true},
		{"xdstp://a/T/x:y", "xdstp://a/T/x%3Ay", true},
		{"xdstp://a/T/x:y", "xdstp://a/T/x%3ay", true},
		{"xdstp://a/T/x/y", "xdstp://a/T/x%2Fy", true},
		{"xdstp://a/T", "xdstp://a/T/", true},
		{"xdstp://a/T/x", "xdstp://a/T/x?", true},
		{"xdstp://a/T/x?k", "xdstp://a/T/x?k=", true},
		{"xdstp://a/T/x?k=1&", "xdstp://a/T/x?k=1", true},
		{"xdstp://a/T/x?&k=1", "xdstp://a/T/x?=&k=1", true},
		{"xdstp://a/T/%zz", "xdstp://a/T/%25zz", true},
		{"xdstp://a/T/x y", "xdstp://a/T/x%20y", true},
		{"xdstp://a/T/x+y", "xdstp://a/T/x%20y", false},
		{"xdstp://a/T/x", "xdstp://a/T/x/", false},
		{"xdstp://a/T/x/y", "xdstp://a/T/x//y", false},
		{"xdstp://a/T/x?k=1", "xdstp://a/T/x", false},
		{"xdstp://a/T/x?k=1", "xdstp://a/T/x?k=2", false},
		{"xdstp://a/T/x?k=1%26l=2", "xdstp://a/T/x?k=1&l=2", false},
		{"xdstp://a/T/x", "xdstp://b/T/x", false},
		{"xdstp:///T/x", "xdstp://b/T/x", false},
		{"xdstp://a/T/x", "xdstp://a/U/x", false},
	}
	for _, tt := range tests {
		a, b := mustParse(t, tt.a), mustParse(t, tt.b)
		if got := a.Equal(b); got != tt.equal {
			t.Errorf("%s equal to %s = %v, want %v", tt.a, tt.b, got, tt.equal)
		}
		if got := a.String() == b.String(); got != tt.equal {
			t.Errorf("texts %s and %s: equal = %v, want %v", a, b, got, tt.equal)
		}
	}
}

func mustParse(t testing.TB, name string) Name {
	t.Helper()
	n, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A name made by hand need not have its parameters in order.
func TestNameMadeByHand(t *testing.T) {
	n := Name{Authority: "a", Type: "T", ID: "x", Params: []Param{{"b", "2"}, {"a", "1"}}}
	m := mustParse(t, "xdstp://a/T/x?a=1&b=2")
	if !n.Equal(m) || !m.Equal(n) {
		t.Errorf("%v and %v are not equal", n, m)
	}
	if n.String() != m.String() {
		t.Errorf("texts %s and %s differ", n, m)
	}
	if n.Params[0].Key != "b" {
		t.Error("the caller's parameters were reordered")
	}
}

// The canonical order is that of the escaped pairs, in which '=' counts.
func TestParamOrder(t *testing.T) {
	tests := []struct{ query, want string }{
		{"a=1&a!=2", "a!=2&a=1"},
		{"a=1&a0=2", "a0=2&a=1"},
		{"aa=1&a=2", "a=2&aa=1"},
		{"z=1&%5B=2", "%5B=2&z=1"},
		{"&z=1", "=&z=1"},
	}
	for _, tt := range tests {
		if got, want := mustParse(t, "xdstp:///T?"+tt.query).String(), "xdstp:///T?"+tt.want; got != want {
			t.Errorf("?%s is %s, want %s", tt.query, got, want)
		}
	}
}

// spec: XDSTP-5
func TestParseReceivedLastWins(t *testing.T) {
	n, err := ParseReceived("xdstp:///T/x?b=1&a=1&b=2&%61=3&b=0")
	if err != nil {
		t.Fatal(err)
	}
	want := []Param{{"a", "3"}, {"b", "0"}}
	if diff := cmp.Diff(want, n.Params); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if _, err := ParseReceived("xdstp://a"); err == nil {
		t.Error("a received name without a type is no error")
	}
}

func TestEscapeSets(t *testing.T) {
	tests := []struct {
		part     string
		set      set
		reserved string
	}{
		{"authority", authoritySet, "%/?#"},
		{"id", idSet, "%:?#[]"},
		{"parameter", paramSet, "%#[]&="},
		{"directive", directiveSet, "%#[],"},
	}
	for _, tt := range tests {
		for c := range 256 {
			want := c < 0x20 || c >= 0x7E || strings.ContainsRune(tt.reserved, rune(c))
			if got := tt.set.has(byte(c)); got != want {
				t.Errorf("%s: byte %#x is escaped = %v, want %v", tt.part, c, got, want)
			}
		}
	}
	if got, want := string(escape(nil, "a\x00/~\x7f\xe4:", idSet)), "a%00/%7E%7F%E4%3A"; got != want {
		t.Errorf("escaped id %q, want %q", got, want)
	}
}

func TestCanonical(t *testing.T) {
	tests := []struct{ name, want string }{
		{"", ""},
		{"old/style?b=1&a=1#x", "old/style?b=1&a=1#x"},
		{"XDSTP://a/T/x", "XDSTP://a/T/x"},
		{"xdstp://a/T/x?b=1&a=2", "xdstp://a/T/x?a=2&b=1"},
		{"xdstp://a/T/x", "xdstp://a/T/x"},
		{"xdstp://a/T/" + strings.Repeat("long", 100) + "?b&a", "xdstp://a/T/" + strings.Repeat("long", 100) + "?a=&b="},
	}
	for _, tt := range tests {
		got, err := Canonical(tt.name)
		if err != nil || got != tt.want {
			t.Errorf("Canonical(%q) = %q, %v; want %q", tt.name, got, err, tt.want)
		}
		if got == tt.name && unsafe.StringData(got) != unsafe.StringData(tt.name) {
			t.Errorf("Canonical(%q) copied a name that is canonical", tt.name)
		}
	}
	if got, err := Canonical("xdstp:x"); err == nil {
		t.Errorf("Canonical of a malformed name is %q, want an error", got)
	}
}

func TestAuthorityOf(t *testing.T) {
	tests := []struct {
		name, want string
		ok         bool
	}{
		{"backend", "", false},
		{"xdstp:", "", false},
		{"xdstp:/a/T", "", false},
		{"xdstp://a", "", false},
		{"xdstp://a/", "", false},
		{"xdstp://a?x/T", "", false},
		{"xdstp:///T", "", true},
		{"xdstp://a/T/x", "a", true},
		{"xdstp://[::1]:80/T/x?k=1", "[::1]:80", true},
		{"xdstp://%23.com/T/x", "#.com", true},
	}
	for _, tt := range tests {
		if got, ok := AuthorityOf(tt.name); got != tt.want || ok != tt.ok {
			t.Errorf("AuthorityOf(%q) = %q, %v; want %q, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}
