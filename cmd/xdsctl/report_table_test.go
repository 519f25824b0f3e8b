package main_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
)

// A long cell costs the other rows of its table nothing.
func TestTableOfLongCell(t *testing.T) {
	rows := [][]string{{"NAME", "STATUS"}, {"a", "ACKED"}, {strings.Repeat("b", 1<<20), "ACKED"}}
	for range 200 {
		rows = append(rows, []string{"cc", "ACKED"})
	}
	var b bytes.Buffer
	if err := report.WriteTable(&b, rows); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 2<<20 {
		t.Errorf("the table has %d bytes", b.Len())
	}
	if got := strings.Split(b.String(), "\n")[1]; got != "a     ACKED" {
		t.Errorf("a row is %q", got)
	}
}
