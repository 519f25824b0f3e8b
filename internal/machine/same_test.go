package machine

import "testing"

// spec: WATCH-4
func TestSameText(t *testing.T) {
	const expired = `tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time `
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"eof", "eof", true},
		{"eof", "", false},
		{"eof", "eof ", false},
		{"eof", "eof again", false},
		{"connection refused", "connection reset", false},
		{expired + "2026-11-22T11:03:37Z is after 2026-11-22T10:00:00Z", expired + "2026-11-22T13:03:38+02:00 is after 2026-11-22T10:00:00Z", true},
		{expired + "2026-11-22T11:03:37Z is after 2026-11-22T10:00:00Z", expired + "2026-11-22T11:03:37Z is after 2026-11-22T11:00:00Z", false},
		{expired + "2026-11-22T11:03:37Z is after 2026-11-22T10:00:00Z", expired + "2026-11-22T11:03:37Z is before 2026-11-22T10:00:00Z", false},
		{expired + "noon", expired + "midnight", false},
		{"uptime 2026-11-22T11:03:37Z is long", "uptime 2026-11-22T11:03:38Z is long", false},
		{"read tcp 127.0.0.1:36614->127.0.0.1:80: connection reset by peer", "read tcp 127.0.0.1:36616->127.0.0.1:80: connection reset by peer", true},
		{`desc = "write tcp6 [::1]:1->[::1]:80: broken pipe"`, `desc = "write tcp6 [::1]:2->[::1]:80: broken pipe"`, true},
		{"lookup a on [::1]:53: read udp 10.0.0.1:5->10.0.0.9:53: i/o timeout", "lookup a on [::1]:53: read udp 10.0.0.2:6->10.0.0.9:53: i/o timeout", true},
		{"read tcp 127.0.0.1:36614->127.0.0.1:80: EOF", "read tcp 127.0.0.1:36614->127.0.0.1:81: EOF", false},
		{"read tcp 127.0.0.1:1->127.0.0.1:80: EOF", "read tcp 127.0.0.1:2->127.0.0.1:80: broken pipe", false},
		{"read tcp 127.0.0.1:1->127.0.0.1:80: EOF", "write tcp 127.0.0.1:1->127.0.0.1:80: EOF", false},
		{"dial tcp 127.0.0.1:80: connection refused", "dial tcp 127.0.0.1:81: connection refused", false},
		{"route a->c", "route b->c", false},
	} {
		if SameText(tt.a, tt.b) != tt.want || SameText(tt.b, tt.a) != tt.want {
			t.Errorf("%q and %q: the same is not %v", tt.a, tt.b, tt.want)
		}
	}
}
