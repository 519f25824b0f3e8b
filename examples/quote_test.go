package examples_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the programs into the documents")

// block is a program between its fences, after the comment that names its file, and perhaps
// declarations in it; the name of a function with "()" stands for its statements.
var block = regexp.MustCompile("(?s)<!-- program: ([^ #]+)(?:#([^ ]+))? -->\n```go\n(.*?)```\n")

// README and documents quote programs that are compiled: a file from its package clause on, some declarations of it, or
// the statements of a function.
//
// spec: U-16
func TestProgramsAreQuoted(t *testing.T) {
	const root = ".."
	quotes := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" || filepath.Base(path) == "CHANGELOG.md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		now := block.ReplaceAllStringFunc(string(text), func(old string) string {
			quotes++
			m := block.FindStringSubmatch(old)
			program, err := quote(filepath.Join(filepath.Dir(path), filepath.FromSlash(m[1])), m[2])
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return old
			}
			return strings.TrimSuffix(old, m[3]+"```\n") + program + "```\n"
		})
		if quoted := len(block.FindAllString(now, -1)); quoted != strings.Count(now, "```go\n") {
			t.Errorf("%s: only %d of its programs say where they stand", path, quoted)
		}
		switch {
		case now == string(text):
		case *update:
			return os.WriteFile(path, []byte(now), 0o644)
		default:
			t.Errorf("%s quotes what is not in the tree; go test ./examples -update writes it", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if quotes < 10 {
		t.Errorf("%d programs are quoted", quotes)
	}
}

// quote returns a file from its package clause on or, of a list of names, their declarations.
func quote(path, names string) (string, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments)
	if err != nil {
		return "", err
	}
	text := func(from, to token.Pos) string {
		return string(source[files.Position(from).Offset:files.Position(to).Offset])
	}
	if names == "" {
		return text(file.Package, file.FileEnd), nil
	}
	var parts []string
	for name := range strings.SplitSeq(names, ",") {
		name, statements := strings.CutSuffix(name, "()")
		d := find(file, name)
		if d == nil {
			return "", fmt.Errorf("%s has no %s", path, name)
		}
		if f, ok := d.(*ast.FuncDecl); ok && statements {
			lines := strings.ReplaceAll(text(f.Body.Lbrace+1, endOf(f)), "\n\t", "\n")
			parts = append(parts, strings.TrimSpace(lines)+"\n")
			continue
		}
		from := d.Pos()
		if doc := docOf(d); doc != nil {
			from = doc.Pos()
		}
		parts = append(parts, text(from, d.End())+"\n")
	}
	return strings.Join(parts, "\n"), nil
}

func find(file *ast.File, name string) ast.Decl {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == name {
				return d
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && v.Names[0].Name == name {
					return d
				}
				if t, ok := s.(*ast.TypeSpec); ok && t.Name.Name == name {
					return d
				}
			}
		}
	}
	return nil
}

// endOf is the end of a function's statements, without a return at their end.
func endOf(f *ast.FuncDecl) token.Pos {
	if all := f.Body.List; len(all) > 0 {
		if last, ok := all[len(all)-1].(*ast.ReturnStmt); ok {
			return last.Pos()
		}
	}
	return f.Body.Rbrace
}

func docOf(d ast.Decl) *ast.CommentGroup {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Doc
	case *ast.GenDecl:
		return d.Doc
	}
	return nil
}

// Each recipe quotes at least one program, and the guide's README.md lists it.
func TestRecipesAreListed(t *testing.T) {
	const guide = "../docs/guide"
	list, err := os.ReadFile(filepath.Join(guide, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipes, err := filepath.Glob(filepath.Join(guide, "*.md"))
	if err != nil || len(recipes) == 0 {
		t.Fatal(recipes, err)
	}
	for _, path := range recipes {
		name := filepath.Base(path)
		text, err := os.ReadFile(path)
		switch {
		case err != nil:
			t.Error(err)
		case name == "README.md":
		case !block.Match(text):
			t.Errorf("%s quotes no program", name)
		case !strings.Contains(string(list), "("+name+")"):
			t.Errorf("README.md does not list %s", name)
		}
	}
}
