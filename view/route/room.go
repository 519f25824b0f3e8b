package route

import (
	"fmt"
	"regexp/syntax"
)

// H-5: maxSteps is how many steps the regular expressions of a table may take together, beside one for each
// of their bytes. A step takes some forty bytes, and what is repeated takes its steps again each time: a few bytes,
// such as .{1000}, would take thousands of times as many.
const maxSteps = 1 << 20

// H-5: maxOwnSteps is how many of them one expression may take. To match a text takes up to some six nanoseconds for
// each step and each byte of the text: a tenth of a second for a path of 8 KiB.
const maxOwnSteps = 1 << 11

// room is how many steps regular expressions may still take, or have taken.
type room struct {
	steps   int
	lacking bool // there was none for an expression
}

// has is whether there is room for what took so much, with all of its expressions.
func (r room) has(took room) bool { return !took.lacking && took.steps <= r.steps }

// parse parses an expression, and takes the room that it needs.
func (r *room) parse(expr string) (*syntax.Regexp, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	more := max(0, stepsOf(re)-len(expr))
	if more > maxOwnSteps {
		return nil, fmt.Errorf("with what it repeats the regular expression takes more than %d steps", maxOwnSteps)
	}
	if more > r.steps {
		r.lacking = true
		return nil, fmt.Errorf("with what they repeat the regular expressions of the configuration take more than %d steps together", maxSteps)
	}
	r.steps -= more
	return re, nil
}

// stepsOf is how many steps an expression takes, about. The parser bounds how often its parts are repeated.
func stepsOf(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		one := stepsOf(re.Sub[0])
		return re.Min*one + max(re.Max-re.Min, 1)*(one+1)
	}
	steps := 1
	for _, sub := range re.Sub {
		steps += stepsOf(sub)
	}
	return steps
}
