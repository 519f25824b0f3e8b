package main

import (
	"bytes"
	"testing"
)

func TestMembersComeAndGo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = `a is at 8080, b is at 8080, synced
b is at 9090, c is at 8080
a is gone, c is gone
b is gone
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
