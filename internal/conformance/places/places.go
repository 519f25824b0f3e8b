// Package places finds where rules stand in the source: a comment that begins with the IDs of
// rules, as in "// DNE-3: a held resource has no timer", stands at the branch that makes it so,
// above it or at the end of its line. A mutation changes the code at such a place.
package places

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Place is where the comment of a rule stands.
type Place struct {
	Rule string
	Path string // of the file, from the root, with slashes
	In   string // the function, as in "Machine.send" or "parse", or else the name that is declared
	line int    // of the code that the comment is about
}

// ID is what the IDs of rules look like.
var ID = regexp.MustCompile(`\b` + id + `\b`)

const id = `[A-Z][A-Z0-9]*-(?:[0-9]+|[a-z])`

// cited is a line that cites rules: IDs, and documents as A57 or TP2 beside them, before a colon
// or alone.
var (
	cited   = regexp.MustCompile(`^(` + id + `)((?:, [A-Z][A-Z0-9]*(?:-(?:[0-9]+|[a-z]))?)*)(?::|$)`)
	beginID = regexp.MustCompile(`^` + id + `\b`)
)

// Find lists the places of a tree of source files, in the order of their paths and lines. It
// fails at an ID that is not known.
func Find(root string, known map[string]bool) ([]Place, error) {
	var all []Place
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) && path != root:
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := inFile(filepath.ToSlash(rel), src, known)
		all = append(all, found...)
		return err
	})
	return all, err
}

// inFile lists the places of a file.
func inFile(path string, src []byte, known map[string]bool) ([]Place, error) {
	if !ID.Match(src) {
		return nil, nil
	}
	f, err := parse(path, src)
	if err != nil {
		return nil, err
	}
	var found []Place
	for _, group := range f.Comments {
		for _, c := range group.List {
			ids, err := citation(strings.TrimSpace(strings.TrimPrefix(c.Text, "//")), known)
			at := f.set.Position(c.Pos())
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, at.Line, err)
			}
			line := at.Line
			if f.alone(c) {
				line = f.set.Position(group.End()).Line + 1
			}
			for _, id := range ids {
				found = append(found, Place{Rule: id, Path: path, In: f.owner(line), line: line})
			}
		}
	}
	return found, nil
}

// citation gives the rules that a line of a comment cites.
func citation(text string, known map[string]bool) ([]string, error) {
	m := cited.FindString(text)
	if m == "" {
		if id := beginID.FindString(text); known[id] {
			return nil, fmt.Errorf("write %q, or begin the line with another word", id+": …")
		}
		return nil, nil
	}
	ids := ID.FindAllString(m, -1)
	for _, id := range ids {
		if !known[id] {
			return nil, fmt.Errorf("%s is no rule", id)
		}
	}
	return ids, nil
}

// file is a parsed file.
type file struct {
	*ast.File
	set *token.FileSet
	src []byte
}

func parse(path string, src []byte) (*file, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, src, parser.ParseComments|parser.SkipObjectResolution)
	return &file{f, set, src}, err
}

// alone says whether a comment has its line for itself.
func (f *file) alone(c *ast.Comment) bool {
	end := f.set.Position(c.Pos()).Offset
	start := strings.LastIndexByte(string(f.src[:end]), '\n') + 1
	return strings.TrimSpace(string(f.src[start:end])) == ""
}

// owner names what is declared around a line: a function with its receiver's type, or else the
// first name of the declaration.
func (f *file) owner(line int) string {
	for _, decl := range f.Decls {
		if f.set.Position(decl.End()).Line < line {
			continue
		}
		switch d := decl.(type) {
		case *ast.FuncDecl:
			return funcName(d)
		case *ast.GenDecl:
			return f.specName(d, line)
		}
	}
	return ""
}

func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

func (f *file) specName(d *ast.GenDecl, line int) string {
	for _, spec := range d.Specs {
		if f.set.Position(spec.End()).Line < line {
			continue
		}
		switch s := spec.(type) {
		case *ast.TypeSpec:
			return s.Name.Name
		case *ast.ValueSpec:
			return s.Names[0].Name
		}
	}
	return ""
}
