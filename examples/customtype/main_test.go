package main

import (
	"bytes"
	"testing"
)

func TestFlagsArrive(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = `checkout updated: map[new-basket:true]
checkout updated: map[new-basket:false]
checkout ambient error: not a valid xdswatch.examples.v1.FeatureFlags: a flag has no name
checkout updated: map[dark-mode:true]
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
