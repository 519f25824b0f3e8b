package places

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Change is what becomes of the code at a place. The code is the statement, case, constant or
// operand that begins on the line that the comment stands at, or below.
type Change struct {
	statement bool // and not an expression
	of        []int
	text      string
	unless    string // the text of the same that holds while a condition does not, given as %s; "" if there is none
}

// Drop is a change: the statement is not run.
func Drop() Change { return Change{statement: true, text: "if false { $ }", unless: "if !(%s) { $ }"} }

// Put is a change: another text stands in place of an expression, with $ for the old one. The
// expression is the condition of an if, for or case, what is ranged over, what is returned or
// assigned, the value of a constant or a field, or a call.
func Put(text string) Change { return Change{text: text} }

// Never is a change: a condition does not hold.
func Never() Change { return Change{text: "false && ($)", unless: "(!(%s) && ($))"} }

// Always is a change: a condition holds.
func Always() Change { return Change{text: "true || ($)", unless: "(%s || ($))"} }

// When is the change made while a condition holds; ok is false of a text that was put.
func (c Change) When(condition string) (when Change, ok bool) {
	ok = c.unless != ""
	c.text, c.unless = fmt.Sprintf(c.unless, condition), ""
	return c, ok
}

// Depth is how deep in its place a change is made. Of several at one place the deepest are made first.
func (c Change) Depth() int { return len(c.of) }

// Of is the change made to a part of the expression: an operand of a row of && or of ||, the
// argument of a call, or one of several results or values, counted from 0. With more than one
// index, a part of that part.
func (c Change) Of(part ...int) Change {
	c.of = append(slices.Clone(c.of), part...)
	return c
}

// Only is the one place of a rule, in a function where one is named.
func Only(all []Place, rule, in string) (Place, error) {
	var found []Place
	for _, p := range all {
		if p.Rule == rule && (in == "" || p.In == in) {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return Place{}, fmt.Errorf("%s stands at %d places of %q, want one: %v", rule, len(found), in, found)
	}
	return found[0], nil
}

// Apply gives the file of a place with a change made to it.
func Apply(root string, p Place, c Change) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.Path)))
	if err != nil {
		return nil, err
	}
	return ApplyTo(src, p, c)
}

// ApplyTo is Apply to a file that may have been changed before: a change leaves lines where they are.
func ApplyTo(src []byte, p Place, c Change) ([]byte, error) {
	f, err := parse(p.Path, src)
	if err != nil {
		return nil, err
	}
	mutant, err := f.apply(p.line, c)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", p.Path, p.line, err)
	}
	_, err = parse(p.Path, mutant)
	return mutant, err
}

func (f *file) apply(line int, c Change) ([]byte, error) {
	n := f.begins(line)
	if n == nil {
		return nil, fmt.Errorf("nothing that can be changed begins here")
	}
	if c.statement {
		if s, ok := n.(ast.Stmt); ok {
			return f.replace(s, c.text), nil
		}
		return nil, fmt.Errorf("a %T is no statement", n)
	}
	e, err := part(parts(n), c.of)
	if err != nil {
		return nil, err
	}
	return f.replace(e, c.text), nil
}

func (f *file) replace(n ast.Node, text string) []byte {
	from, to := f.set.Position(n.Pos()).Offset, f.set.Position(n.End()).Offset
	text = strings.ReplaceAll(text, "$", string(f.src[from:to]))
	return slices.Concat(f.src[:from], []byte(text), f.src[to:])
}

// begins is the outermost node that begins on a line.
func (f *file) begins(line int) (found ast.Node) {
	ast.Inspect(f.File, func(n ast.Node) bool {
		if n == nil || found != nil {
			return false
		}
		switch n.(type) {
		case *ast.CommentGroup:
			return false
		case *ast.BlockStmt, *ast.FieldList:
			return true
		}
		if f.set.Position(n.Pos()).Line == line {
			found = n
		}
		return true
	})
	return found
}

// parts are the expressions of a node that a change is about: mostly one.
func parts(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.IfStmt:
		return []ast.Expr{n.Cond}
	case *ast.ForStmt:
		return []ast.Expr{n.Cond}
	case *ast.RangeStmt:
		return []ast.Expr{n.X}
	case *ast.CaseClause:
		return n.List
	case *ast.ReturnStmt:
		return n.Results
	case *ast.AssignStmt:
		return n.Rhs
	case *ast.ExprStmt:
		return []ast.Expr{n.X}
	case *ast.KeyValueExpr:
		return []ast.Expr{n.Value}
	case *ast.ValueSpec:
		return n.Values
	case *ast.GenDecl:
		if len(n.Specs) == 1 {
			return parts(n.Specs[0])
		}
	case *ast.FuncDecl:
		if len(n.Body.List) == 1 {
			return parts(n.Body.List[0])
		}
	case ast.Expr:
		return []ast.Expr{n}
	}
	return nil
}

// part follows a path of indexes from the parts of a node.
func part(of []ast.Expr, path []int) (ast.Expr, error) {
	if len(of) == 1 && len(path) > 0 {
		of = operands(of[0])
	}
	at := 0
	if len(path) > 0 {
		at, path = path[0], path[1:]
	} else if len(of) > 1 {
		return nil, fmt.Errorf("there are %d expressions; say which", len(of))
	}
	if at >= len(of) {
		return nil, fmt.Errorf("there is no part %d of %d", at, len(of))
	}
	if len(path) > 0 {
		return part(of[at:at+1], path)
	}
	return of[at], nil
}

// operands are the parts of an expression.
func operands(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return operands(e.X)
	case *ast.BinaryExpr:
		return row(e, e.Op)
	case *ast.CallExpr:
		return e.Args
	}
	return nil
}

// row are the operands of a row of one operator.
func row(e ast.Expr, op token.Token) []ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == op {
		return append(row(b.X, op), row(b.Y, op)...)
	}
	return []ast.Expr{e}
}
