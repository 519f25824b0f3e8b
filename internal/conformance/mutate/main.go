// Command mutate breaks rules of the machine, one at a time, and shows that the script of
// the rule notices. Nothing in the tree is touched: mutated files are laid over by go test -overlay. All
// those that a condition can choose are compiled together.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	m := mutants{src: src, tmp: tmp}
	for _, mu := range rules.Mutations() {
		if only != "" && mu.Rule != only {
			continue
		}
		at, err := places.Only(found, mu.Rule, mu.In)
		if err != nil {
			return err
		}
		m.all = append(m.all, mutant{mu, at})
	}
	if err := m.build(); err != nil {
		return err
	}
	if text, err := m.test(m.together, 0, "."); err != nil {
		return fmt.Errorf("the scripts fail without any mutation:\n%s", text)
	}
	survivors := 0
	for i, mu := range m.all {
		verdict, err := m.try(i)
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

type mutant struct {
	rules.Mutation
	at places.Place
}

// mutants are machines that each break one rule.
type mutants struct {
	src, tmp string
	all      []mutant
	together string // a test binary with all those that a condition can choose
}

// chooses is the file of the machine by which a test binary is one of the mutants, counted from 1.
const chooses = `package machine

import (
	"os"
	"strconv"
)

var mutant, _ = strconv.Atoi(os.Getenv("MUTANT"))
`

// build makes the test binary of those that a condition can choose.
func (m *mutants) build() error {
	order := make([]int, len(m.all))
	for i := range order {
		order[i] = i
	}
	files := map[string][]byte{"mutant.go": []byte(chooses)}
	slices.SortStableFunc(order, func(i, j int) int { return m.all[j].Change.Depth() - m.all[i].Change.Depth() })
	for _, i := range order {
		change, ok := m.all[i].Change.When(fmt.Sprintf("mutant == %d", i+1))
		if !ok {
			continue
		}
		at := m.all[i].at
		var err error
		if files[at.Path] == nil {
			files[at.Path], err = os.ReadFile(filepath.Join(m.src, filepath.FromSlash(at.Path)))
		}
		if err == nil {
			files[at.Path], err = places.ApplyTo(files[at.Path], at, change)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.all[i].Rule, err)
		}
	}
	var err error
	m.together, err = m.compile("together", files)
	return err
}

// compile makes a test binary of the machine with files in place of its own, or beside them.
func (m *mutants) compile(name string, files map[string][]byte) (binary string, err error) {
	replace := map[string]string{}
	for path, text := range files {
		laid := filepath.Join(m.tmp, name+"-"+filepath.Base(path))
		replace[filepath.Join(m.src, filepath.FromSlash(path))] = laid
		if err := os.WriteFile(laid, text, 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	plan := filepath.Join(m.tmp, name+".json")
	if err := os.WriteFile(plan, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(m.tmp, name+".test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", plan, "-o", binary, ".")
	cmd.Dir = m.src
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return binary, nil
}

// try runs a mutant's script.
func (m *mutants) try(i int) (verdict string, err error) {
	mu, binary := m.all[i], m.together
	if _, ok := mu.Change.When(""); !ok {
		text, err := places.Apply(m.src, mu.at, mu.Change)
		if err != nil {
			return "", err
		}
		if binary, err = m.compile("alone", map[string][]byte{mu.at.Path: text}); err != nil {
			return "", err
		}
	}
	report, err := m.test(binary, i+1, "^"+mu.Script+"$")
	var exit *exec.ExitError
	switch {
	case err == nil && strings.Contains(report, "--- PASS: TestScripts/"+mu.Script):
		return survived, nil
	case errors.As(err, &exit) && strings.Contains(report, "--- FAIL: TestScripts/"+mu.Script):
		return killed, nil
	}
	return "", fmt.Errorf("the script %s was not run:\n%s", mu.Script, report)
}

// test runs the scripts that match a pattern as a mutant; 0 is none.
func (m *mutants) test(binary string, mutant int, pattern string) (string, error) {
	cmd := exec.Command(binary, "-test.timeout=1m", "-test.v", "-test.run", "^TestScripts$/"+pattern)
	cmd.Dir, cmd.Env = m.src, append(os.Environ(), fmt.Sprintf("MUTANT=%d", mutant))
	text, err := cmd.CombinedOutput()
	return string(text), err
}
