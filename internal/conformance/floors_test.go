package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The machine's files stand on floors, and use nothing that stands above; the making of streams,
// which knows of the quirks, is the exception.
func TestFloors(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	floors := floorsOf(sectionOf(string(text), "The machine"))
	fset := token.NewFileSet()
	var files []*ast.File
	for file := range floors {
		f, err := parser.ParseFile(fset, filepath.Join(root, "internal", "machine", file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: nothing{}, Error: func(error) {}} // what others declare does not matter
	pkg, _ := conf.Check("machine", fset, files, info)
	var up []string
	for id, obj := range info.Uses {
		if obj.Pkg() != pkg || !shared(pkg, obj) {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(obj.Pos()).Filename)
		if floors[to] < floors[from] {
			up = append(up, from+" uses "+obj.Name())
		}
	}
	slices.Sort(up)
	if want := []string{"source.go uses streamFor", "stream_life.go uses newQuirks"}; !slices.Equal(slices.Compact(up), want) {
		t.Errorf("upwards: %q, want %q", up, want)
	}
}

// sectionOf is the text below a heading, to the next.
func sectionOf(text, title string) string {
	_, text, _ = strings.Cut(text, "\n## "+title+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// floorsOf reads the floors of the files from the map, from 1 at the top.
func floorsOf(text string) map[string]int {
	floors, floor, name := map[string]int{}, 0, ""
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `") || len(cells) < 4 {
			continue
		}
		if cells[2] != name {
			name = cells[2]
			floor++
		}
		for _, m := range mapped.FindAllStringSubmatch(cells[1], -1) {
			floors[m[1]] = floor
		}
	}
	return floors
}

// shared says whether a use of an object counts: of functions, methods, types and what else is declared
// for the package, and not of fields.
func shared(pkg *types.Package, obj types.Object) bool {
	f, ok := obj.(*types.Func)
	return obj.Parent() == pkg.Scope() || ok && f.Signature().Recv() != nil
}

// nothing imports packages without content.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	pkg.MarkComplete()
	return pkg, nil
}
