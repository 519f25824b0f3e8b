package redact

import "testing"

// spec: H-3
func TestTarget(t *testing.T) {
	for uri, want := range map[string]string{
		"xds.example.com:443":        "xds.example.com:443",
		"dns:///xds.example.com:443": "dns:///xds.example.com:443",
		"unix:///run/a@b":            "unix:///run/a@b",
		"unix-abstract:@a":           "unix-abstract:@a",
		"rest:a,b":                   "rest:a,b",
		"":                           "",
		"dns:///h:1?token=T":         "dns:///h:1?token=[redacted]",
		"h:1?T":                      "h:1?[redacted]",
		"h:1?":                       "h:1?",
		"h:1?a=&b=T=T;c":             "h:1?a=[redacted]&b=[redacted]&[redacted]",
		"unix:///run/s?token=T":      "unix:///run/s?token=[redacted]",
		"T@h:1":                      "[redacted]@h:1",
		"consul://user:T@h:1/svc?token=T&wait=14s#T": "consul://[redacted]@h:1/svc?token=[redacted]&wait=[redacted]#[redacted]",
		"dns://h/T@T@h:1": "dns://h/[redacted]@h:1",
	} {
		got := Target(uri)
		if got != want {
			t.Errorf("%q is told as %q, want %q", uri, got, want)
		}
		if again := Target(got); again != got {
			t.Errorf("%q is told as %q", got, again)
		}
	}
	const uri = "x://u:T@h/p?k=T2#T3"
	for text, want := range map[string]string{
		"lookup u:T@h: no":        "lookup [redacted]@h: no",
		`parse "` + uri + `": no`: `parse "x://[redacted]@h/p?k=[redacted]#[redacted]": no`,
		"h/p?k=T2 and h/p#T3":     "h/p?[redacted] and h/p#[redacted]",
		"nothing of it":           "nothing of it",
	} {
		if got := InTarget(text, uri); got != want {
			t.Errorf("%q is told as %q, want %q", text, got, want)
		}
	}
	if got := InTarget("any h:1", "h:1"); got != "any h:1" {
		t.Errorf("a text is told as %q", got)
	}
}
