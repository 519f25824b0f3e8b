package transport

import (
	"context"
	"errors"
	"io"
	"testing"
)

// endless is a body that is there at once and never ends.
type endless struct{ reads int }

func (e *endless) Read(b []byte) (int, error) {
	e.reads++
	return len(b), nil
}

// What was received already may be much when it is decompressed: that counts for the request
// timeout too.
func TestPollEndsInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	body := &endless{}
	b := make([]byte, 1)
	if _, err := io.ReadFull(patient{body, ctx}, b); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := readAtMost(ctx, nil, patient{body, ctx}, -1, 1<<20); !errors.Is(err, context.Canceled) || body.reads != 1 {
		t.Errorf("%v after %d reads, want the context's end and no read more", err, body.reads)
	}
}
