package apigolden

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each public package has an Example that runs. The packages of Envoy's types show their one line in the
// comment of the package, since each Example makes a program; TestGet of resource/wellknown runs the lines.
func TestExamples(t *testing.T) {
	for _, dir := range packages(t) {
		if api(t, dir) == "" {
			continue
		}
		var without []string
		run := showsType(t, dir)
		for _, e := range doc.Examples(parse(t, dir, "*_test.go")...) {
			if e.Output == "" && !e.EmptyOutput {
				without = append(without, "Example"+e.Name)
			}
			run = run || e.Output != ""
		}
		if !run {
			t.Errorf("%s has no Example that runs; without output: %s", dir, strings.Join(without, " "))
		} else if len(without) > 0 {
			t.Logf("%s: %s only compile", dir, strings.Join(without, " "))
		}
	}
}

// showsType tells whether a package's comment shows a line that looks a resource of its type up.
func showsType(t *testing.T, dir string) bool {
	t.Helper()
	name := filepath.Base(dir)
	return slices.ContainsFunc(parse(t, dir, name+".go"), func(f *ast.File) bool {
		return strings.Contains(f.Doc.Text(), "watcher.Get(ctx, c, "+name+".Type, ")
	})
}

func parse(t *testing.T, dir, pattern string) (parsed []*ast.File) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	return parsed
}
