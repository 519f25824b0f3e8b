package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// The program is made of the public packages alone, which shows that they are enough.
func TestPublicImports(t *testing.T) {
	t.Parallel()
	const module = `"github.com/xdswatch/xdswatch/`
	public := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			switch name, ours := strings.CutPrefix(i.Path.Value, module); {
			case !ours || strings.HasPrefix(name, "cmd/xdsctl/"):
			case strings.Contains("/"+name, "/internal/"):
				t.Errorf("%s imports %s", path, i.Path.Value)
			default:
				public++
			}
		}
		return nil
	})
	if err != nil || public < 20 { // the check sees what it is there to see
		t.Errorf("%d imports of public packages, %v", public, err)
	}
}
