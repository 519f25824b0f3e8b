package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

// Graph is who names whom: nodes and edges are sorted and there once each. Lists are never nil.
type Graph struct {
	Nodes   []Node `json:"nodes"`
	Edges   []Edge `json:"edges"`
	Missing []Ref  `json:"missing"` // nodes that do not exist, or have no usable value
	Roots   []Ref  `json:"-"`       // where the text begins
}

// Ref is a resource by its name.
type Ref struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// Compare orders by type and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(strings.Compare(r.Type, o.Type), strings.Compare(r.Name, o.Name))
}

// Statuses of nodes.
const (
	NodeOK      = "ok"
	NodeMissing = "missing" // it does not exist
	NodeError   = "error"   // it has no usable value
	NodeWaiting = "waiting" // no answer came yet
)

// Node is a resource of a graph.
type Node struct {
	Ref
	Status string `json:"status"`
}

// Edge says that a resource names another.
type Edge struct {
	From     Ref  `json:"from"`
	To       Ref  `json:"to"`
	Blocking bool `json:"blocking"` // the configuration waits for it
}

// WriteGraph writes a graph: as "text", "json", "dot" or "mermaid".
func WriteGraph(out io.Writer, format string, g Graph) error {
	var b bytes.Buffer
	switch format {
	case "json":
		return WriteJSON(out, g)
	case "dot":
		g.dot(&b)
	case "mermaid":
		g.mermaid(&b)
	default:
		g.text(&b)
	}
	_, err := out.Write(b.Bytes())
	return err
}

// numbers are the places of nodes.
func (g Graph) numbers() map[Ref]int {
	at := map[Ref]int{}
	for i, n := range g.Nodes {
		at[n.Ref] = i
	}
	return at
}

// label is what a node is called, in lines.
func (n Node) label() []string {
	lines := []string{subscription.Short(n.Type), Clean(n.Name)}
	if n.Status != NodeOK {
		lines = append(lines, strings.ToUpper(n.Status))
	}
	return lines
}

// text writes trees: of the roots, and of each node that no other names. What stands above in full
// is named only.
func (g Graph) text(b *bytes.Buffer) {
	children, named := map[Ref][]Ref{}, map[Ref]bool{}
	for _, e := range g.Edges {
		children[e.From] = append(children[e.From], e.To)
		named[e.To] = true
	}
	nodes, at := g.Nodes, g.numbers()
	written := map[Ref]bool{}
	var write func(n Node, first, rest string)
	write = func(n Node, first, rest string) {
		line := first + strings.Join(n.label(), " ")
		below := children[n.Ref]
		if written[n.Ref] && len(below) > 0 {
			line, below = line+" (above)", nil
		}
		written[n.Ref] = true
		fmt.Fprintln(b, line)
		for i, to := range below {
			if i == len(below)-1 {
				write(nodes[at[to]], rest+"└── ", rest+"    ")
			} else {
				write(nodes[at[to]], rest+"├── ", rest+"│   ")
			}
		}
	}
	for _, root := range g.Roots {
		if i, ok := at[root]; ok {
			write(nodes[i], "", "")
		}
	}
	for _, n := range nodes {
		if !named[n.Ref] && !written[n.Ref] {
			write(n, "", "")
		}
	}
}

// dot writes the language of Graphviz.
func (g Graph) dot(b *bytes.Buffer) {
	at := g.numbers()
	b.WriteString("digraph xds {\n  rankdir=LR;\n  node [shape=box];\n")
	for i, n := range g.Nodes {
		mark := ""
		if n.Status != NodeOK {
			mark = ", color=red"
		}
		fmt.Fprintf(b, "  n%d [label=\"%s\"%s];\n", i, strings.Join(escaped(n.label(), dotEscapes), `\n`), mark)
	}
	for _, e := range g.Edges {
		style := ""
		if !e.Blocking {
			style = " [style=dashed]"
		}
		fmt.Fprintf(b, "  n%d -> n%d%s;\n", at[e.From], at[e.To], style)
	}
	b.WriteString("}\n")
}

// mermaid writes the language of mermaid.js.
func (g Graph) mermaid(b *bytes.Buffer) {
	at := g.numbers()
	b.WriteString("flowchart LR\n")
	for i, n := range g.Nodes {
		fmt.Fprintf(b, "  n%d[\"%s\"]\n", i, strings.Join(escaped(n.label(), mermaidEscapes), "<br/>"))
	}
	for _, e := range g.Edges {
		arrow := "-->"
		if !e.Blocking {
			arrow = "-.->"
		}
		fmt.Fprintf(b, "  n%d %s n%d\n", at[e.From], arrow, at[e.To])
	}
	marked := slices.DeleteFunc(slices.Clone(g.Nodes), func(n Node) bool { return n.Status == NodeOK })
	if len(marked) > 0 {
		b.WriteString("  classDef bad stroke:#f00\n")
	}
	for _, n := range marked {
		fmt.Fprintf(b, "  class n%d bad\n", at[n.Ref])
	}
}

var (
	dotEscapes     = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	mermaidEscapes = strings.NewReplacer(`&`, `&amp;`, `"`, `&quot;`, `<`, `&lt;`, `>`, `&gt;`, `#`, `&#35;`)
)

func escaped(lines []string, r *strings.Replacer) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = r.Replace(line)
	}
	return out
}

// Compare orders by where edges begin and end.
func (e Edge) Compare(o Edge) int {
	return cmp.Or(e.From.Compare(o.From), e.To.Compare(o.To))
}
