package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each command has a manual page, of nothing but lines that man understands.
func TestMan(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	if status, out, errs := runOnce(t, "man", dir); status != 0 || out != "" || errs != "" {
		t.Fatalf("status %d, %s%s", status, out, errs)
	}
	request := regexp.MustCompile(`^\.(TH "[A-Z-]+" "1" "" "xdsctl [^"]+" "xdsctl"|SH [A-Z ]+|nf|fi|TP)$`)
	for _, c := range newRoot().Commands() {
		text, err := os.ReadFile(filepath.Join(dir, "xdsctl-"+c.Name()+".1"))
		if c.Hidden {
			t.Errorf("%s is not in the help", c.Name())
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, ".") && !request.MatchString(line) || strings.HasPrefix(line, "'") {
				t.Errorf("%s: %q", c.Name(), line)
			}
		}
		for _, part := range []string{".SH NAME\nxdsctl\\-" + c.Name(), ".SH SYNOPSIS\n", ".SH SEE ALSO\nxdsctl(1), "} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %q", c.Name(), part)
			}
		}
	}
	if _, help, _ := runOnce(t, "--help"); !strings.Contains(help, "\n  man  ") {
		t.Errorf("help lacks man:\n%s", help)
	}
	page, err := os.ReadFile(filepath.Join(dir, "xdsctl.1"))
	if err != nil || !strings.Contains(string(page), "xdsctl\\-validate(1)") || !strings.Contains(string(page), "xdsctl\\-completion(1)") {
		t.Errorf("%v\n%s", err, page)
	}
	if status, _, _ := runOnce(t, "man"); status != 2 {
		t.Errorf("status %d", status)
	}
	if status, _, _ := runOnce(t, "man", filepath.Join(dir, "xdsctl.1")); status != 1 {
		t.Errorf("status %d", status)
	}
}

// A line that begins as a request does not become one.
func TestRoff(t *testing.T) {
	t.Parallel()
	if got, want := roff(".a\n'b\nc\\d -e"), "\\&.a\n\\&'b\nc\\ed \\-e"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Shells complete values of flags, types of subscriptions and roots; and there is a script for each.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"get --output ":      "table json yaml name",
		"watch --variant ":   "sotw delta",
		"validate --as ":     "grpc envoy",
		"get c":              "cds",
		"record lds l":       "leds",
		"resolve ":           "lds: rds: cds: all",
		"graph r":            "rds:",
		"ui cds a":           "all",
		"graph rds:a ":       "",
		"validate --output ": "text json",
	} {
		_, out, _ := runOnce(t, append([]string{"__completeNoDesc"}, strings.Split(line, " ")...)...)
		lines := strings.Fields(out)
		if got := strings.Join(lines[:len(lines)-1], " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if _, out, _ := runOnce(t, "__complete", "get", "--ca"); !strings.Contains(out, "--ca-cert\tPEM FILE of") {
		t.Errorf("with a description: %s", out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if status, out, errs := runOnce(t, "completion", shell); status != 0 || !strings.Contains(out, "xdsctl") {
			t.Errorf("%s: status %d, %s", shell, status, errs)
		}
	}
}

// In a bash that has nothing of the package bash-completion the script works too.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	path := build(t)
	if _, help, _ := runOnce(t, "completion", "bash", "--help"); strings.Contains(help, "depends on") || !strings.Contains(help, "~/.bashrc") {
		t.Errorf("%s", help)
	}
	const script = `
source <("$1" completion bash) || exit
PATH=${1%/*}:$PATH
complete -p xdsctl || exit
shift
for COMP_LINE; do
	COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMPREPLY=()
	__start_xdsctl 2>/dev/null # the messages of compopt, since no key was pressed
	echo "$COMP_LINE => ${COMPREPLY[*]}"
done`
	lines := map[string]string{
		"xdsctl va":                              "validate",
		"xdsctl get --output ":                   "table json yaml name",
		"xdsctl get --output=y":                  "yaml",
		"xdsctl get --server localhost:18000 c":  "cds",
		"xdsctl record lds l":                    "leds",
		"xdsctl resolve --server=localhost:1 rd": "rds:",
		"xdsctl graph cds:a ":                    "",
		"xdsctl get --ca-c":                      "--ca-cert",
	}
	args := []string{"--norc", "--noprofile", "-c", script, "bash", path}
	want := []string{"complete -o default -F __start_xdsctl xdsctl"}
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		args, want = append(args, line), append(want, line+" => "+lines[line])
	}
	out, err := exec.CommandContext(patient(t), bash, args...).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != strings.Join(want, "\n") {
		t.Errorf("%v\n%s\nwant\n%s", err, got, strings.Join(want, "\n"))
	}
}
