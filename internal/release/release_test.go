package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func modulesOf(t *testing.T, root string) []*module {
	t.Helper()
	all, err := published(root)
	must(t, err)
	return all
}

// Modules are found, and those for tests, benchmarks and tools are not of the release.
func TestPublished(t *testing.T) {
	var dirs []string
	for _, m := range modulesOf(t, root) {
		dirs = append(dirs, m.dir)
	}
	if want := []string{"", "otelmetrics", "transport/googledefault"}; !slices.Equal(dirs, want) {
		t.Errorf("published are %q, want %q", dirs, want)
	}
}

// What is here is one version: that of the library, as servers see it, is what the modules
// require of each other.
//
// spec: U-12
func TestOneVersion(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(root, versionFile))
	must(t, err)
	version := "v" + strings.Trim(strings.TrimPrefix(string(versionConst.Find(file)), "const Version = "), `"`)
	all := modulesOf(t, root)
	for _, m := range all {
		for _, r := range m.Require {
			sibling := slices.ContainsFunc(all, func(o *module) bool { return o.Path == r.Path })
			if sibling && r.Version != version {
				t.Errorf("%s requires %s %s, want %s", m.Path, r.Path, r.Version, version)
			}
		}
	}
}

// A consumer of any published module builds without a replace directive, from what the
// command sets: a module proxy made of files serves the modules as they are here, and the
// machine's module cache, or else its proxy, those of others.
//
// spec: U-12
func TestConsumers(t *testing.T) {
	if testing.Short() {
		t.Skip("long: builds a program for each module")
	}
	const version = "v0.987.6"
	work := t.TempDir()
	tree, proxy := filepath.Join(work, "tree"), filepath.Join(work, "proxy")
	for _, m := range modulesOf(t, root) {
		copyModule(t, m, tree)
	}
	var said bytes.Buffer
	must(t, run([]string{version}, tree, &said))
	modules := modulesOf(t, tree)
	for _, m := range modules {
		if tag := "git tag " + path.Join(m.dir, version) + "\n"; !strings.Contains(said.String(), tag) {
			t.Errorf("%q lacks %q", said.String(), tag)
		}
		serve(t, proxy, tree, m, version)
	}
	env := consumerEnv(t, proxy, filepath.Join(work, "modules"))
	for _, m := range modules {
		t.Run(m.Path, func(t *testing.T) {
			dir := consumer(t, m, filepath.Join(tree, m.dir), version)
			binary := filepath.Join(dir, "consumer")
			command(t, dir, env, "go", "build", "-o", binary, ".")
			info, err := buildinfo.ReadFile(binary)
			must(t, err)
			if !slices.ContainsFunc(info.Deps, func(d *debug.Module) bool {
				return d.Path == m.Path && d.Version == version && d.Replace == nil
			}) {
				t.Errorf("%s is not what was built with: %v", version, info)
			}
		})
	}
}

// copyModule copies the files of a module.
func copyModule(t *testing.T, m *module, to string) {
	t.Helper()
	for _, name := range files(t, filepath.Join(root, m.dir)) {
		b, err := os.ReadFile(filepath.Join(root, m.dir, name))
		must(t, err)
		file := filepath.Join(to, m.dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, b, 0o644))
	}
}

// consumerEnv is an environment with the proxy and a module cache of its own.
func consumerEnv(t *testing.T, proxy, cache string) []string {
	t.Helper()
	here := strings.Split(strings.TrimSpace(string(command(t, root, os.Environ(), "go", "env", "GOMODCACHE", "GOPROXY", "GOFLAGS"))+"\n\n"), "\n")
	proxies := []string{"file://" + filepath.ToSlash(proxy), "file://" + filepath.ToSlash(filepath.Join(here[0], "cache", "download")), here[1]}
	flags := "-mod=mod -modcacherw -trimpath -ldflags=-w" // nobody debugs it
	if len(here) > 2 {
		flags += " " + here[2]
	}
	// The sums of others' modules are those of the go.sum that the consumer begins with.
	return append(os.Environ(), "GOPROXY="+strings.Join(proxies, ","), "GOFLAGS="+flags, "GOMODCACHE="+cache, "GOSUMDB=off", "GOWORK=off")
}

// consumer makes a program that imports all that a module has for programs.
func consumer(t *testing.T, m *module, tree, version string) string {
	t.Helper()
	dir := t.TempDir()
	var src strings.Builder
	src.WriteString("package main\n\nimport (\n")
	names := strings.Fields(string(command(t, tree, os.Environ(), "go", "list", "-f", `{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}`, "./...")))
	for _, name := range names {
		if !slices.Contains(strings.Split(name, "/"), "internal") && !strings.Contains(name, "/examples/") {
			fmt.Fprintf(&src, "\t_ %q\n", name)
		}
	}
	src.WriteString(")\n\nfunc main() {}\n")
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(src.String()), 0o644))
	mod := fmt.Sprintf("module example.com/consumer\n\ngo 1.26.0\n\nrequire %s %s\n", m.Path, version)
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	sums, err := os.ReadFile(filepath.Join(tree, "go.sum"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644))
	return dir
}

func command(t *testing.T, dir string, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, b, stderr.Bytes())
	}
	return b
}

// What cannot be released is told.
func TestRefused(t *testing.T) {
	for _, version := range []string{"0.2.0", "v0.2", "v2.0.0", "v01.2.3", "v0.2.0 ", "latest"} {
		if err := run([]string{version}, t.TempDir(), nil); err == nil {
			t.Errorf("%q is taken", version)
		}
		if err := set(t.TempDir(), nil, version); err == nil || !strings.Contains(err.Error(), "vX.Y.Z") {
			t.Errorf("%q: %v", version, err)
		}
	}
	for name, tt := range map[string]struct{ mod, want string }{
		"replaced":    {"module a.b/c/d\n\nreplace x.y/z => ../z\n", "x.y/z"},
		"unpublished": {"module a.b/c/d\n\nrequire a.b/c/xtest v0.0.0\n", "not published"},
		"misnamed":    {"module a.b/c/e\n", "want a.b/c/d"},
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module a.b/c\n"), 0o644))
		must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "d", "go.mod"), []byte(tt.mod), 0o644))
		if _, err := published(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
