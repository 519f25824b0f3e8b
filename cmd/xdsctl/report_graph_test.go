package main_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/resource"
)

// graphOf makes a graph of lines "NAME STATUS: CHILD ?MIRROR"; all are clusters.
func graphOf(lines ...string) report.Graph {
	ref := func(name string) report.Ref {
		return report.Ref{Type: resource.TypePrefix + "envoy.config.cluster.v3.Cluster", Name: name}
	}
	g := report.Graph{Nodes: []report.Node{}, Edges: []report.Edge{}, Missing: []report.Ref{}}
	for _, line := range lines {
		head, children, _ := strings.Cut(line, ":")
		name, status, _ := strings.Cut(head, " ")
		g.Nodes = append(g.Nodes, report.Node{Ref: ref(name), Status: status})
		for _, child := range strings.Fields(children) {
			to := strings.TrimPrefix(child, "?")
			g.Edges = append(g.Edges, report.Edge{From: ref(name), To: ref(to), Blocking: to == child})
		}
		if status != report.NodeOK {
			g.Missing = append(g.Missing, ref(name))
		}
	}
	if len(lines) > 0 {
		g.Roots = []report.Ref{g.Nodes[0].Ref}
	}
	return g
}

func TestWriteGraph(t *testing.T) {
	for _, tt := range []struct {
		name, format string
		graph        report.Graph
		want         string
	}{
		{"tree", "text", graphOf("a ok: b c", "b ok: d", "c missing:", "d ok:"), `cds a
├── cds b
│   └── cds d
└── cds c MISSING
`},
		{"what is named twice", "text", graphOf("a ok: b c", "b ok: c", "c ok: d", "d ok:", "other ok: d"), `cds a
├── cds b
│   └── cds c
│       └── cds d
└── cds c (above)
cds other
└── cds d
`},
		{"a ring", "text", graphOf("a ok: b", "b ok: a"), `cds a
└── cds b
    └── cds a (above)
`},
		{"nothing", "text", graphOf(), ""},
		{"dot", "dot", graphOf(`a"\ ok: b ?c`, "b error:", "c ok:"), `digraph xds {
  rankdir=LR;
  node [shape=box];
  n0 [label="cds\na\"\\"];
  n1 [label="cds\nb\nERROR", color=red];
  n2 [label="cds\nc"];
  n0 -> n1;
  n0 -> n2 [style=dashed];
}
`},
		{"mermaid", "mermaid", graphOf(`a"#<b> ok: b ?c`, "b waiting:", "c ok:"), `flowchart LR
  n0["cds<br/>a&quot;&#35;&lt;b&gt;"]
  n1["cds<br/>b<br/>WAITING"]
  n2["cds<br/>c"]
  n0 --> n1
  n0 -.-> n2
  classDef bad stroke:#f00
  class n1 bad
`},
		{"json", "json", graphOf("a ok: b", "b missing:"), `{
  "nodes": [
    {
      "type": "CDS",
      "name": "a",
      "status": "ok"
    },
    {
      "type": "CDS",
      "name": "b",
      "status": "missing"
    }
  ],
  "edges": [
    {
      "from": {
        "type": "CDS",
        "name": "a"
      },
      "to": {
        "type": "CDS",
        "name": "b"
      },
      "blocking": true
    }
  ],
  "missing": [
    {
      "type": "CDS",
      "name": "b"
    }
  ]
}
`},
		{"no graph", "json", graphOf(), "{\n  \"nodes\": [],\n  \"edges\": [],\n  \"missing\": []\n}\n"},
	} {
		var b strings.Builder
		if err := report.WriteGraph(&b, tt.format, tt.graph); err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(b.String(), resource.TypePrefix+"envoy.config.cluster.v3.Cluster", "CDS")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
