package xdstp

import (
	"testing"
	"unicode/utf8"
)

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
		checkNameProto(t, n)
		checkURN(t, input, n)
		checkContext(t, n)
	})
}

// checkNameProto says that a name has a structured form if it may have one, and that it is
// read back the same.
func checkNameProto(t *testing.T, n Name) {
	t.Helper()
	m, err := n.Proto()
	if err != nil {
		if !n.IsGlob() && isUTF8(Locator{Name: n}) {
			t.Errorf("%s has no structured form: %v", n, err)
		}
		return
	}
	if again, err := NameFromProto(m); err != nil || !again.Equal(n) {
		t.Errorf("%s became %v, read back as %s, %v", n, m, again, err)
	}
}

func isUTF8(l Locator) bool {
	ok := utf8.ValidString(l.Name.Authority) && utf8.ValidString(l.Name.Type) && utf8.ValidString(l.Name.ID)
	for _, p := range l.Name.Params {
		ok = ok && utf8.ValidString(p.Key) && utf8.ValidString(p.Value)
	}
	for _, d := range l.Directives {
		ok = ok && utf8.ValidString(d.Entry) && (d.Alt == nil || isUTF8(*d.Alt))
	}
	return ok
}

// checkURN says that nothing but a URN passes for one.
func checkURN(t *testing.T, input string, n Name) {
	t.Helper()
	urn, err := ParseURN(input)
	if err != nil {
		checkOffset(t, err)
		return
	}
	if !urn.Equal(n) || urn.IsGlob() {
		t.Errorf("the URN %q is %s, want %s", input, urn, n)
	}
	if l, err := ParseLocator(input); err != nil || len(l.Directives) > 0 || !l.Name.Equal(n) {
		t.Errorf("the URN %q is the locator %s, %v", input, l, err)
	}
}

func checkContext(t *testing.T, n Name) {
	t.Helper()
	if err := n.CheckReserved(); err != nil {
		checkOffset(t, err)
	}
	c := Context{Node: []Param{{"a", "node"}}, Features: []Param{ClientFeature("f")}}
	with := c.Apply(n)
	checkRoundTrip(t, with)
	if _, ok := with.Param(featurePrefix + "f"); !ok || !c.Apply(with).Equal(with) {
		t.Errorf("%s with a context is %s", n, with)
	}
}

// Two names are equal if, and only if, their canonical texts are.
func FuzzEqual(f *testing.F) {
	for _, c := range loadSections(f)["cross"] {
		f.Add(c.Input, c.Envoy)
		f.Add(c.Input, c.GRPCGo)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		n, err := Parse(a)
		if err != nil {
			return
		}
		m, err := Parse(b)
		if err != nil {
			return
		}
		if n.Equal(m) != (n.String() == m.String()) {
			t.Errorf("%q and %q are equal = %v, but their texts are %s and %s", a, b, n.Equal(m), n, m)
		}
		if n.Matches(m) {
			if g, ok := m.Glob(); !ok || !g.Equal(n) {
				t.Errorf("%s matches %s, whose glob is %s, %v", n, m, g, ok)
			}
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
		if r, err := parseReceivedLocator(input); err != nil || !r.Equal(l) {
			t.Errorf("received, %q is %s, %v; want %s", input, r, err, l)
		}
		checkLocatorProto(t, l)
	})
}

// checkLocatorProto says that a locator is valid, that its structured form is read back the
// same, and so are its bytes in each of their forms.
func checkLocatorProto(t *testing.T, l Locator) {
	t.Helper()
	if err := l.Validate(); err != nil {
		t.Fatalf("%s is not valid: %v", l, err)
	}
	m, err := l.Proto()
	if err != nil {
		if isUTF8(l) {
			t.Errorf("%s has no structured form: %v", l, err)
		}
		return
	}
	if again, err := LocatorFromProto(m); err != nil || !again.Equal(l) {
		t.Errorf("%s became %v, read back as %s, %v", l, m, again, err)
	}
	for _, b := range [][]byte{marshal(t, m), []byte(field(1, l.String())), []byte(l.String())} {
		if again, err := DecodeLocator(b); err != nil || !again.Equal(l) {
			t.Errorf("%q is read back as %s, %v; want %s", b, again, err, l)
		}
	}
}

func addLocatorSeeds(f *testing.F, wrap func([]byte) []byte) {
	seeds := 0
	for _, c := range loadSections(f)["cases"] {
		l, err := ParseLocator(c.Input)
		if err != nil {
			continue
		}
		m, err := l.Proto()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wrap(marshal(f, m)))
		f.Add(wrap([]byte(field(1, c.Input))))
		f.Add(wrap([]byte(c.Input)))
		seeds += 3
	}
	if seeds == 0 {
		f.Fatal("the corpus is empty")
	}
}

// Any bytes are read without a panic, and what was read has a text that is read the same.
func FuzzDecodeLocator(f *testing.F) {
	addLocatorSeeds(f, func(b []byte) []byte { return b })
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeLocator(b)
		if err != nil {
			checkField(t, err)
			return
		}
		if again, err := ParseLocator(l.String()); err != nil || !again.Equal(l) {
			t.Errorf("%q is %s, read back as %s, %v", b, l, again, err)
		}
		checkLocatorProto(t, l)
	})
}

func checkField(t *testing.T, err error) {
	t.Helper()
	e := err.(*Error)
	if e.Field == "" || e.Part == "" || e.Reason == "" {
		t.Errorf("error %#v does not say where and why", e)
	}
	if inner, ok := e.Err.(*Error); ok && inner.Field == "" {
		checkOffset(t, inner)
	}
}
