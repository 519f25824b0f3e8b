package view

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// shell are the files that run the core over a client. All others are pure.
var shell = []string{"listeners.go", "ondemand.go", "ready.go", "sets.go", "view.go"}

// notPure must not be imported by the core.
var notPure = []string{"context", "sync", "sync/atomic", "os", "log", "log/slog", "net", "io", "runtime", "math/rand", "math/rand/v2"}

// The core is a function: it starts nothing, waits for nothing and reads no clock.
func TestPurity(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	pure, impure := 0, 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := impurities(f)
		if slices.Contains(shell, file) {
			impure += len(found)
			continue
		}
		pure++
		for _, what := range found {
			t.Errorf("%s: %s", file, what)
		}
	}
	if pure < 10 || impure == 0 { // the check sees what it is there to see
		t.Errorf("%d pure files, and %d impurities in the shell", pure, impure)
	}
}

func impurities(f *ast.File) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			if path, err := strconv.Unquote(n.Path.Value); err != nil || slices.Contains(notPure, path) {
				found = append(found, "imports "+n.Path.Value)
			}
		case *ast.GoStmt:
			found = append(found, "starts a goroutine")
		case *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
			found = append(found, "has channels")
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && !slices.Contains([]string{"Time", "Duration", "Second"}, n.Sel.Name) {
				found = append(found, "uses time."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}
