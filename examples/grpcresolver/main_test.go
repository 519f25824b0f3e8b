package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRPCsFollowTheEndpoints(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	// One, two, one, and one more without the management server.
	if n := strings.Count(out.String(), "RPCs went to"); n != 5 {
		t.Errorf("%d lines of RPCs, want 5:\n%s", n, out.String())
	}
}
