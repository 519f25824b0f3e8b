package main

import (
	"bytes"
	"testing"
)

func TestAuthoritiesAreApart(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = `east has a cluster: east hears updated to "1"
west has a cluster: west hears updated to "1"
west dies: west hears ambient error (connection)
east changes: east hears updated to "2"
west is back: west hears recovered
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
