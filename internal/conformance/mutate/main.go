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
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/xdswatch/xdswatch/internal/machine").Output()
	if err != nil {
		return fmt.Errorf("finding the machine's source: %w", err)
	}
	src := strings.TrimSpace(string(out))
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
		verdict, err := try(src, tmp, mu)
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
func try(src, tmp string, mu rules.Mutation) (verdict string, err error) {
	file := filepath.Join(src, mu.File)
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(data), mu.Old); n != 1 {
		return "", fmt.Errorf("%s holds %q %d times, want once", mu.File, mu.Old, n)
	}
	mutant := filepath.Join(tmp, mu.Rule+".go")
	if err := os.WriteFile(mutant, []byte(strings.Replace(string(data), mu.Old, mu.New, 1)), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutant}})
	if err != nil {
		return "", err
	}
	plan := filepath.Join(tmp, mu.Rule+".json")
	if err := os.WriteFile(plan, overlay, 0o600); err != nil {
		return "", err
	}
	text, err := test(src, plan, "^"+mu.Script+"$")
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(text, "--- PASS: TestScripts/"+mu.Script):
		return survived, nil
	case errors.As(err, &exit) && strings.Contains(text, "--- FAIL: TestScripts/"+mu.Script):
		return killed, nil
	}
	return "", fmt.Errorf("the script %s was not run:\n%s", mu.Script, text)
}

// test runs the scripts that match a pattern, with files laid over if there is a plan.
func test(src, plan, pattern string) (string, error) {
	args := []string{"test", "-count=1", "-vet=off", "-v", "-run", "^TestScripts$/" + pattern}
	if plan != "" {
		args = append(args, "-overlay", plan)
	}
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir = src
	text, err := cmd.CombinedOutput()
	return string(text), err
}
