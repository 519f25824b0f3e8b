package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	tests := []struct {
		only, drivers string
		rows, entries int
		err           string // what the error says; "" if there is none
	}{
		{"", "", len(rows), 2, ""},
		{"^W9", "glob", 0, 0, "takes part"},
		{"^G", "glob", 2, 1, ""},
		{"^W10", "", 0, 0, `-only "^W10" matches none of W1-sotw-cds-1k, `},
		{"", "nul", 0, 0, `-drivers "nul" matches none of xdswatch, xdswatch+glob`},
		{"(", "", 0, 0, "-only: "},
		{"", "(", 0, 0, "-drivers: "},
	}
	for _, test := range tests {
		m := &matrix{drivers: []entry{
			{Name: "xdswatch", only: regexp.MustCompile("")}, {Name: "xdswatch+glob", only: regexp.MustCompile("^[GT]")},
		}}
		err := m.choose(test.only, test.drivers)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("-only %q -drivers %q: %v, want an error that says %q", test.only, test.drivers, err, test.err)
			}
			continue
		}
		if err != nil || len(m.rows) != test.rows || len(m.drivers) != test.entries {
			t.Errorf("-only %q -drivers %q: %d rows, %d drivers, %v", test.only, test.drivers, len(m.rows), len(m.drivers), err)
		}
	}
}
