package xdstp

import "testing"

func addSeeds(f *testing.F) {
	seeds := 0
	for _, cases := range loadSections(f) {
		for _, c := range cases {
			f.Add(c.Input)
			seeds++
		}
	}
	if seeds == 0 {
		f.Fatal("the corpus is empty")
	}
}

// Any text is read without a panic, and what was read is printed and read back the same.
func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, input string) {
		n, err := Parse(input)
		if err != nil {
			checkOffset(t, err)
			if r, err := ParseReceived(input); err == nil {
				checkRoundTrip(t, r)
			}
			return
		}
		checkRoundTrip(t, n)
		if r, err := ParseReceived(input); err != nil || !r.Equal(n) {
			t.Errorf("received, %q is %v, %v; want %v", input, r, err, n)
		}
		if a, ok := AuthorityOf(input); !ok || a != n.Authority {
			t.Errorf("AuthorityOf(%q) = %q, %v; want %q", input, a, ok, n.Authority)
		}
		if IsGlob(input) != n.IsGlob() {
			t.Errorf("IsGlob(%q) = %v, but of the parsed name %v", input, IsGlob(input), n.IsGlob())
		}
		if g, ok := n.Glob(); ok && !g.Matches(n) {
			t.Errorf("the glob %s of %s does not match it", g, n)
		}
	})
}

func checkRoundTrip(t *testing.T, n Name) {
	t.Helper()
	text := n.String()
	again, err := Parse(text)
	if err != nil || !again.Equal(n) {
		t.Fatalf("%q is read back as %#v, %v; want %#v", text, again, err, n)
	}
	if c, err := Canonical(text); err != nil || c != text {
		t.Errorf("Canonical(%q) = %q, %v", text, c, err)
	}
}

func checkOffset(t *testing.T, err error) {
	t.Helper()
	if e := err.(*Error); e.Offset < 0 || e.Offset > len(e.Input) {
		t.Errorf("offset %d is outside %q", e.Offset, e.Input)
	}
}

func FuzzParseLocator(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, input string) {
		l, err := ParseLocator(input)
		if err != nil {
			checkOffset(t, err)
			return
		}
		text := l.String()
		again, err := ParseLocator(text)
		if err != nil {
			t.Fatalf("%q is printed as %q, which is not read: %v", input, text, err)
		}
		if !again.Equal(l) || again.String() != text {
			t.Errorf("%q is printed as %q and read back as %q", input, text, again)
		}
	})
}
