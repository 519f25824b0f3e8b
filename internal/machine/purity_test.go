package machine

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

// mayImport is all that the machine needs. Nothing in it does I/O, logs or locks.
var mayImport = []string{
	"bytes", "cmp", "container/heap", "errors", "fmt", "hash/maphash", "iter", "math", "slices", "sort", "strings", "time", "unicode",
	"google.golang.org/protobuf/encoding/protowire",
	"github.com/xdswatch/xdswatch/internal/wire", "github.com/xdswatch/xdswatch/xdstp",
}

// mayUseOfTime are the parts of package time that do not look at a clock.
var mayUseOfTime = []string{"Time", "Duration", "Unix", "Nanosecond", "Microsecond", "Millisecond", "Second", "Parse", "RFC3339"}

// The machine is a function: it starts nothing, waits for nothing and reads no clock.
func TestPurity(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	checked := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, fault := range impurities(f) {
			t.Errorf("%s: %s", fset.Position(fault.at), fault.what)
		}
	}
	if checked == 0 {
		t.Fatal("no source was found")
	}
}

// The check sees what it is there to see.
func TestPuritySees(t *testing.T) {
	const src = `package p

import (
	"os"
	"time"
)

var c chan int

func f() {
	go f()
	select {}
	c <- 1
	<-c
	time.Now()
	time.AfterFunc(1, f)
	for range c {
	}
}

func init() {}
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, fault := range impurities(f) {
		got = append(got, fault.what)
	}
	want := []string{
		`imports "os"`, "has a channel", "starts a goroutine", "selects", "sends", "receives",
		"uses time.Now", "uses time.AfterFunc", "has an init function",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

type impurity struct {
	at   token.Pos
	what string
}

func impurities(f *ast.File) (found []impurity) {
	add := func(n ast.Node, what string) { found = append(found, impurity{n.Pos(), what}) }
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			if path, err := strconv.Unquote(n.Path.Value); err != nil || !slices.Contains(mayImport, path) {
				add(n, "imports "+n.Path.Value)
			}
		case *ast.GoStmt:
			add(n, "starts a goroutine")
		case *ast.SelectStmt:
			add(n, "selects")
		case *ast.ChanType:
			add(n, "has a channel")
		case *ast.SendStmt:
			add(n, "sends")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				add(n, "receives")
			}
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				add(n, "has an init function")
			}
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if ok && pkg.Name == "time" && !slices.Contains(mayUseOfTime, n.Sel.Name) {
				add(n, "uses time."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}
