package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is what its go.mod says, as `go mod edit -json` has it.
type module struct {
	dir     string // from the root, with slashes; "" of the root's own
	Path    string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

func (m *module) UnmarshalJSON(b []byte) error {
	type fields module
	f := struct {
		Module struct{ Path string }
		*fields
	}{fields: (*fields)(m)}
	err := json.Unmarshal(b, &f)
	m.Path = f.Module.Path
	return err
}

// private says whether a module in a directory is for tests, benchmarks or tools.
func private(dir string) bool {
	return slices.ContainsFunc(strings.Split(dir, "/"), func(name string) bool {
		return name == "bench" || name == "examples" || name == "tools" || name == "internal" || strings.HasSuffix(name, "test")
	})
}

// published finds the modules that programs may require, the root's first.
func published(root string) ([]*module, error) {
	var all []*module
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(rel)
		if dir == "." {
			dir = ""
		}
		if private(dir) {
			return nil
		}
		m, err := readModule(root, dir)
		all = append(all, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *module) int { return strings.Compare(a.dir, b.dir) })
	if len(all) == 0 || all[0].dir != "" {
		return nil, fmt.Errorf("%s is not the root of the repository", root)
	}
	return all, check(all)
}

func readModule(root, dir string) (*module, error) {
	m := &module{dir: dir}
	b, err := goMod(filepath.Join(root, filepath.FromSlash(dir)), "-json")
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(b, m)
}

// goMod runs go mod edit in a directory.
func goMod(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", append([]string{"mod", "edit"}, args...)...)
	cmd.Dir = dir
	b, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: go mod edit: %s", dir, exit.Stderr)
	}
	return b, err
}

// check says what in the modules no consumer could use. Replace directives count in the
// repository alone, so they may stand for modules of the release and for nothing else.
func check(all []*module) error {
	var faults []error
	paths := map[string]bool{}
	for _, m := range all {
		paths[m.Path] = true
	}
	for _, m := range all {
		if want := path.Join(all[0].Path, m.dir); m.Path != want {
			faults = append(faults, fmt.Errorf("%s/go.mod: module %s, want %s", m.dir, m.Path, want))
		}
		for _, r := range m.Replace {
			if !paths[r.Old.Path] {
				faults = append(faults, fmt.Errorf("%s: replaces %s, which consumers do not see", m.Path, r.Old.Path))
			}
		}
		for _, r := range m.Require {
			if strings.HasPrefix(r.Path, all[0].Path+"/") && !paths[r.Path] {
				faults = append(faults, fmt.Errorf("%s: requires %s, which is not published", m.Path, r.Path))
			}
		}
	}
	return errors.Join(faults...)
}

// versionFile holds the constant that management servers see.
const versionFile = "client/config.go"

var (
	versionForm  = regexp.MustCompile(`^v[01]\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`)
	versionConst = regexp.MustCompile(`(?m)^const Version = ".*"$`)
)

// set sets the version of the library and the modules' requirements of each other.
func set(root string, all []*module, version string) error {
	if !versionForm.MatchString(version) {
		return fmt.Errorf("version %q: want vX.Y.Z of major version 0 or 1, as v0.2.0", version)
	}
	if err := setConst(filepath.Join(root, versionFile), version); err != nil {
		return err
	}
	for _, m := range all {
		var args []string
		for _, r := range m.Require {
			if slices.ContainsFunc(all, func(o *module) bool { return o.Path == r.Path }) {
				args = append(args, "-require="+r.Path+"@"+version)
			}
		}
		if len(args) == 0 {
			continue
		}
		if _, err := goMod(filepath.Join(root, m.dir), args...); err != nil {
			return err
		}
	}
	return nil
}

func setConst(file, version string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if len(versionConst.FindAll(b, -1)) != 1 {
		return fmt.Errorf("%s: no line, or more than one, begins with: const Version = ", file)
	}
	line := fmt.Sprintf("const Version = %q", strings.TrimPrefix(version, "v"))
	return os.WriteFile(file, versionConst.ReplaceAllLiteral(b, []byte(line)), 0o644)
}
