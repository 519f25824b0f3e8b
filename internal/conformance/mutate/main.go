// Command mutate breaks rules of the machine, one at a time, and shows that the script of
// the rule notices. It is slow, since each mutation is compiled: run it by make mutate.
// Nothing in the tree is touched: the mutated file is laid over by go test -overlay.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/xdswatch/xdswatch/internal/conformance/places"
	"github.com/xdswatch/xdswatch/internal/conformance/rules"
)

func main() {
	only := flag.String("rule", "", "the only rule to break")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(only string) error {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/xdswatch/xdswatch/"+rules.Machine).Output()
	if err != nil {
		return fmt.Errorf("finding the machine's source: %w", err)
	}
	src := strings.TrimSpace(string(out))
	found, err := places.Find(src, rules.IDs())
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if text, err := test(src, "", "."); err != nil {
		return fmt.Errorf("the scripts fail without any mutation:\n%s", text)
	}
	survivors := 0
	for _, mu := range rules.Mutations() {
		if only != "" && mu.Rule != only {
			continue
		}
		verdict, err := try(src, tmp, found, mu)
		if err != nil {
			return fmt.Errorf("%s: %w", mu.Rule, err)
		}
		if verdict != killed {
			survivors++
		}
		fmt.Printf("%-10s %-28s %s: %s\n", mu.Rule, mu.Script, verdict, mu.Says)
	}
	if survivors > 0 {
		return fmt.Errorf("%d mutations were not noticed", survivors)
	}
	return nil
}

const (
	killed   = "killed"
	survived = "SURVIVED"
)

// try runs a mutation's script on the mutated machine.
func try(src, tmp string, found []places.Place, mu rules.Mutation) (verdict string, err error) {
	at, err := places.Only(found, mu.Rule, mu.In)
	if err != nil {
		return "", err
	}
	text, err := places.Apply(src, at, mu.Change)
	if err != nil {
		return "", err
	}
	mutant := filepath.Join(tmp, mu.Rule+".go")
	if err := os.WriteFile(mutant, text, 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(src, filepath.FromSlash(at.Path)): mutant}})
	if err != nil {
		return "", err
	}
	plan := filepath.Join(tmp, mu.Rule+".json")
	if err := os.WriteFile(plan, overlay, 0o600); err != nil {
		return "", err
	}
	report, err := test(src, plan, "^"+mu.Script+"$")
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(report, "--- PASS: TestScripts/"+mu.Script):
		return survived, nil
	case errors.As(err, &exit) && strings.Contains(report, "--- FAIL: TestScripts/"+mu.Script):
		return killed, nil
	}
	return "", fmt.Errorf("the script %s was not run:\n%s", mu.Script, report)
}

// test runs the scripts that match a pattern, with files laid over if there is a plan.
func test(src, plan, pattern string) (string, error) {
	args := []string{"test", "-count=1", "-vet=off", "-timeout=1m", "-v", "-run", "^TestScripts$/" + pattern}
	if plan != "" {
		args = append(args, "-overlay", plan)
	}
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir = src
	text, err := cmd.CombinedOutput()
	return string(text), err
}
