package xdstp

import "testing"

func TestIsGlob(t *testing.T) {
	tests := []struct {
		name string
		want bool
	}{
		{"*", false},
		{"foo/*", false},
		{"xdstp://a/*", false},
		{"xdstp://a", false},
		{"xdstp:/a/T/*", false},
		{"xdstp://a/T/*", true},
		{"xdstp:///T/*", true},
		{"xdstp://a/T/foo/*", true},
		{"xdstp://a/T/foo/%2A", true},
		{"xdstp://a/T/foo%2F*", true},
		{"xdstp://a/T/foo/*?k=v", true},
		{"xdstp://a/T/foo/*#x", false},
		{"xdstp://a/T/foo*", false},
		{"xdstp://a/T/*/foo", false},
		{"xdstp://a/T/foo/**", false},
		{"xdstp://a/T/foo?k=/*", false},
	}
	for _, tt := range tests {
		if got := IsGlob(tt.name); got != tt.want {
			t.Errorf("IsGlob(%q) = %v, want %v", tt.name, got, tt.want)
		}
		if n, err := Parse(tt.name); err == nil && n.IsGlob() != tt.want {
			t.Errorf("Parse(%q).IsGlob() = %v, want %v", tt.name, n.IsGlob(), tt.want)
		}
	}
}

// spec: GLOB-1, CTX-4
func TestGlobMatches(t *testing.T) {
	tests := []struct {
		glob, name string
		want       bool
	}{
		{"xdstp://a/T/foo/*", "xdstp://a/T/foo/bar", true},
		{"xdstp://a/T/foo/*", "xdstp://a/T/foo/b%20r", true},
		{"xdstp://a/T/*", "xdstp://a/T/bar", true},
		{"xdstp://a/T/foo//*", "xdstp://a/T/foo//bar", true},
		{"xdstp:///T/*?k=1&l=2", "xdstp:///T/x?l=2&k=1", true},
		{"xdstp://a/T/foo/*", "xdstp://a/T/foo/bar/baz", false},
		{"xdstp://a/T/foo/*", "xdstp://a/T/foo/b%2Fr", false},
		{"xdstp://a/T/foo/*", "xdstp://a/T/foo/", false},
		{"xdstp://a/T/foo/*", "xdstp://a/T/foo", false},
		{"xdstp://a/T/foo/*", "xdstp://a/T/food", false},
		{"xdstp://a/T/foo/*", "xdstp://a/T/foo/*", false},
		{"xdstp://a/T/*", "xdstp://a/T", false},
		{"xdstp://a/T/foo/*", "xdstp://b/T/foo/bar", false},
		{"xdstp://a/T/foo/*", "xdstp://a/U/foo/bar", false},
		{"xdstp://a/T/foo/*?a=b", "xdstp://a/T/foo/bar", false},
		{"xdstp://a/T/foo/*", "xdstp://a/T/foo/bar?a=b", false},
		{"xdstp://a/T/foo/*?a=b", "xdstp://a/T/foo/bar?a=c", false},
		{"xdstp://a/T/foo/bar", "xdstp://a/T/foo/bar", false},
	}
	for _, tt := range tests {
		glob, name := mustParse(t, tt.glob), mustParse(t, tt.name)
		if got := glob.Matches(name); got != tt.want {
			t.Errorf("%s matches %s = %v, want %v", tt.glob, tt.name, got, tt.want)
		}
		owner, ok := name.Glob()
		if got := ok && owner.Equal(glob); got != tt.want {
			t.Errorf("the glob of %s is %s, %v; equal to %s = %v, want %v", tt.name, owner, ok, tt.glob, got, tt.want)
		}
	}
}
