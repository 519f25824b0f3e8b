package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

func TestEverythingIsSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("long: the program takes its time")
	}
	var out bytes.Buffer
	err := run(t.Context(), &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chapters() {
		if !strings.Contains(out.String(), "✓ "+c.title) {
			t.Errorf("not in the summary: %s", c.title)
		}
	}
}

func TestInterruptedStoryIsNotSeen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := run(ctx, &out); !errors.Is(err, context.Canceled) {
		t.Errorf("run returned %v, want %v", err, context.Canceled)
	}
	if strings.Contains(out.String(), "✓") {
		t.Errorf("seen without time:\n%s", out.String())
	}
}
