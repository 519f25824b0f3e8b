package transport

import (
	"net"
	"testing"
	"time"
)

// deadlines is a connection that keeps its last deadline of writing.
type deadlines struct {
	net.Conn
	last time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.last = t
	return nil
}

// Saying goodbye to a server that reads nothing takes no longer than a close may take; an earlier deadline stays.
func TestFarewellIsShort(t *testing.T) {
	conn := new(deadlines)
	now := time.Now()
	for _, wait := range []time.Duration{10 * time.Second, 0} {
		if err := (hasty{conn}).SetWriteDeadline(now.Add(wait)); err != nil {
			t.Fatal(err)
		}
		if most := time.Now().Add(min(wait, farewellTime)); conn.last.After(most) || conn.last.Before(now) {
			t.Errorf("a deadline in %v became one in %v", wait, conn.last.Sub(now))
		}
	}
}
