package jwtcreds

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A look at a file that blocks ends with its context.
//
// spec: H-10
func TestLookEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		c := &Creds{file: "x", load: func(string) (string, time.Time, error) { <-free; return "t", time.Time{}, nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(time.Minute, func() { close(free) })
		begin := time.Now()
		if got := c.Look(ctx); got != nil || time.Since(begin) != time.Second {
			t.Errorf("after %v: %v", time.Since(begin), got)
		}
		<-free
	})
}
