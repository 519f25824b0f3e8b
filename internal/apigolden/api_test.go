// Package apigolden holds the exported declarations of the public packages as text, so that a
// review sees each change of them.
package apigolden

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what there is into testdata/api")

const root = "../.."

// packages lists the directories of the public packages of this module, by their paths.
func packages(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		switch {
		case path == root:
		case name == "internal", name == "testdata", name == "examples", name == "cmd", name == "tools", strings.HasPrefix(name, "."):
			return filepath.SkipDir
		default:
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && name != "otelmetrics" && name != "googledefault" {
				return filepath.SkipDir // of tests and measurements
			}
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if slices.ContainsFunc(files, func(f string) bool { return !strings.HasSuffix(f, "_test.go") }) {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// api writes the exported declarations of a package without their comments, in order.
func api(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name != "main" {
			parsed = append(parsed, f)
		}
	}
	types := reachable(parsed)
	var decls []string
	for _, f := range parsed {
		ast.FileExports(f)
		for _, d := range f.Decls {
			if m, ok := d.(*ast.FuncDecl); !ok || m.Recv == nil || types[base(m.Recv.List[0].Type)] {
				decls = append(decls, texts(t, fset, d)...)
			}
		}
	}
	slices.Sort(decls)
	return strings.Join(decls, "\n")
}

// reachable has the types of a package whose exported methods a program can call: the exported ones, and
// those that they embed.
func reachable(files []*ast.File) map[string]bool {
	types, embedded := map[string]bool{}, map[string][]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			types[spec.Name.Name] = false
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if field.Names == nil {
						embedded[spec.Name.Name] = append(embedded[spec.Name.Name], base(field.Type))
					}
				}
			}
			return true
		})
	}
	var reach func(string)
	reach = func(name string) {
		if reached, own := types[name]; own && !reached {
			types[name] = true
			for _, e := range embedded[name] {
				reach(e)
			}
		}
	}
	for name := range types {
		if ast.IsExported(name) {
			reach(name)
		}
	}
	return types
}

// base is the name of a type without its pointer and parameters; "" of another package's.
func base(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return base(e.X)
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.IndexListExpr:
		return base(e.X)
	}
	return ""
}

// texts writes a declaration, of a group each part by itself.
func texts(t *testing.T, fset *token.FileSet, d ast.Decl) (out []string) {
	t.Helper()
	switch d := d.(type) {
	case *ast.FuncDecl:
		d.Body, d.Doc = nil, nil
		return []string{text(t, fset, d)}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		var typ ast.Expr // of constants that repeat the one before them
		for _, spec := range d.Specs {
			one := *d
			one.Doc, one.Lparen, one.Rparen = nil, token.NoPos, token.NoPos
			part := bare(spec)
			if v, ok := part.(*ast.ValueSpec); ok && v.Type == nil && len(v.Values) == 0 {
				v.Type = typ
			} else if ok {
				typ = v.Type
			}
			one.Specs = []ast.Spec{part}
			out = append(out, text(t, fset, &one))
		}
	}
	return out
}

// bare is a part of a declaration without comments.
func bare(spec ast.Spec) ast.Spec {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		own := *s
		own.Doc, own.Comment = nil, nil
		ast.Inspect(own.Type, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				f.Doc, f.Comment = nil, nil
			}
			return true
		})
		return &own
	case *ast.ValueSpec:
		own := *s
		own.Doc, own.Comment = nil, nil
		return &own
	}
	return spec
}

func text(t *testing.T, fset *token.FileSet, node any) string {
	t.Helper()
	var b strings.Builder
	config := printer.Config{Mode: printer.TabIndent, Tabwidth: 8}
	if err := config.Fprint(&b, fset, node); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimRight(line, "\n\t "); line != "" { // where a comment was
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// Each change of what the public packages export is in a golden file. With -update they are
// written.
func TestExported(t *testing.T) {
	golden := map[string]bool{}
	for _, dir := range packages(t) {
		got := api(t, dir)
		if got == "" {
			continue
		}
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.ReplaceAll(filepath.ToSlash(rel), "/", "-") + ".txt"
		if rel == "." {
			name = "root.txt"
		}
		golden[name] = true
		file := filepath.Join(root, "testdata", "api", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("package %s exports something else; if that is meant, run\ngo test ./internal/apigolden -update\n(-%s +now):\n%s", rel, name, diff)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "testdata", "api", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(golden) < 10 {
		t.Errorf("only %d packages are found", len(golden))
	}
	for _, file := range files {
		if !golden[filepath.Base(file)] {
			t.Errorf("%s is of no package", file)
		}
	}
}
