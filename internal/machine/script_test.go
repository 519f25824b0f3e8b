package machine

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/testutil/script"
)

var update = flag.Bool("update", false, "rewrite the scripts with what happens")

const scriptDir = "../../testdata/scripts"

// TestScripts runs every script on the machine alone.
func TestScripts(t *testing.T) {
	for _, file := range scriptFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			runScript(t, file)
		})
	}
}

func scriptFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(scriptDir + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", scriptDir, err)
	}
	return files
}

func readScript(t *testing.T, file string) (*script.Script, []byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := script.Parse(filepath.Base(file), data)
	if err != nil {
		t.Fatal(err)
	}
	return s, data
}

func runScript(t *testing.T, file string) {
	s, data := readScript(t, file)
	d := newDriver(t, s)
	var all [][]string
	differs := false
	for _, st := range s.Steps {
		got := d.run(st.Input)
		all = append(all, got)
		diff := st.Diff(got, script.Requests, script.Told, script.Inside)
		differs = differs || diff != ""
		if diff != "" && !*update {
			t.Errorf("%s", diff)
		}
	}
	if t.Failed() {
		t.Logf("claim: %s", s.Claim)
		t.Logf("rules: %s", strings.Join(s.Headers["spec"], " "))
	}
	if words := s.Unsought(); len(words) > 0 {
		t.Errorf("the driver knows no %q", words)
	}
	if *update && differs {
		if err := os.WriteFile(file, script.Update(data, all), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
