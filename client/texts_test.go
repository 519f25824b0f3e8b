package client_test

import (
	"testing"

	"github.com/xdswatch/xdswatch/client"
)

// A program may have a number of another version of this package, which has a text all the same.
func TestTextsOfUnknownNumbers(t *testing.T) {
	if got := client.Reason(200).String(); got != "unknown" {
		t.Errorf("a reason is called %q", got)
	}
	if got := client.EventKind(200).String(); got != "unknown" {
		t.Errorf("a kind of event is called %q", got)
	}
	if got := (client.ReasonTTL + 1).String(); got != "unknown" {
		t.Errorf("the reason after the last is called %q", got)
	}
	if got := client.ReasonTTL.String(); got != "ttl" {
		t.Errorf("the last reason is called %q", got)
	}
}
