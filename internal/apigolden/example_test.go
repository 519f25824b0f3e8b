package apigolden

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Each public package has an Example that runs.
func TestExamples(t *testing.T) {
	for _, dir := range packages(t) {
		if api(t, dir) == "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var tests []*ast.File
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			tests = append(tests, f)
		}
		var without []string
		run := false
		for _, e := range doc.Examples(tests...) {
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
