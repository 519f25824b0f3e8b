package view_test

import (
	"os/exec"
	"strings"
	"testing"
)

// A store keeps no resource with a message that the program does not link, and each HTTP listener has the filter
// router: a program that follows one would start without a server only if it imported that filter by chance. Tests
// link it, so the go command is asked.
func TestRouterIsLinked(t *testing.T) {
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(deps), "/extensions/filters/http/router/v3\n") {
		t.Error("the view does not link the filter router")
	}
}
