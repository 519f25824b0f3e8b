package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/conformance/places"
	"github.com/xdswatch/xdswatch/internal/conformance/rules"
)

// proof is a script or test that proves a rule.
type proof struct {
	name string
	path string // from the root, with slashes
}

const scripts = "testdata/scripts"

// scriptDirs are the folders of scripts: of the client, and of the view.
var scriptDirs = []string{scripts, "view/testdata/scripts"}

// collect finds the proofs of each rule: scripts first, then tests, each in order.
func collect(root string) (map[string][]proof, error) {
	proofs := map[string][]proof{}
	known := rules.IDs()
	add := func(id string, p proof) error {
		if !known[id] {
			return fmt.Errorf("%s: %s cites %s, which is no rule", p.path, p.name, id)
		}
		if !slices.Contains(proofs[id], p) {
			proofs[id] = append(proofs[id], p)
		}
		return nil
	}
	if err := collectScripts(root, add); err != nil {
		return nil, err
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) && path != root:
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return collectTests(path, filepath.ToSlash(rel), add)
	})
	return proofs, err
}

func collectScripts(root string, add func(string, proof) error) error {
	for _, dir := range scriptDirs {
		if err := collectScriptsOf(root, dir, add); err != nil {
			return err
		}
	}
	return nil
}

func collectScriptsOf(root, dir string, add func(string, proof) error) error {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.txtar"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := filepath.Base(file)
		p := proof{strings.TrimSuffix(name, ".txtar"), dir + "/" + name}
		for _, id := range cited(string(data)) {
			if err := add(id, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// cited lists the rules in the headers of a script. Package script reads scripts too, but with the messages
// of the protocol, and gRPC, in the program.
func cited(text string) (ids []string) {
	for line := range strings.Lines(text) {
		if list, ok := strings.CutPrefix(line, "# spec:"); ok {
			ids = append(ids, strings.Fields(list)...)
		}
	}
	return ids
}

// collectTests reads the comments of a file that say which rules the test around them, or
// below them, proves.
func collectTests(path, rel string, add func(string, proof) error) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			text, ok := strings.CutPrefix(c.Text, "// spec:")
			if !ok {
				continue
			}
			name, ok := owner(f, c.Pos())
			if !ok {
				name = filepath.Base(path)
			}
			for _, id := range places.ID.FindAllString(text, -1) {
				if err := add(id, proof{name, rel}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// owner is the first function that ends behind a place, if it is a test.
func owner(f *ast.File, at token.Pos) (name string, ok bool) {
	for _, decl := range f.Decls {
		if fn, isFunc := decl.(*ast.FuncDecl); isFunc && fn.End() > at {
			name = fn.Name.Name
			break
		}
	}
	for _, prefix := range []string{"Test", "Fuzz", "Example"} {
		if strings.HasPrefix(name, prefix) {
			return name, true
		}
	}
	return "", false
}
