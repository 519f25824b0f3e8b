package main

import (
	"bytes"
	"testing"
)

func TestThreeWays(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = `get: a has 0 localities
events: a updated with 0 localities
events: a updated with 2 localities
set: a
set: b
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
