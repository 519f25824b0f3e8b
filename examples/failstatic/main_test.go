package main

import (
	"bytes"
	"testing"
)

// spec: LKG-5 LKG-9
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = `the server says: backend has 2 localities (version 1)
known from the last run: backend has 2 localities (version 1)
the server is down; requests go to what is known
the server says: backend has 3 localities (version 2)
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
