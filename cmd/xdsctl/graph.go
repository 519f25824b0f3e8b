package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/view"
)

const graphLong = `Print who names whom below a root, once all of it is known: listeners, route configurations,
clusters, endpoints. ROOT is written as for xdsctl resolve. What is missing or in error is marked.

With -o json it is {nodes: [{type, name, status}], edges: [{from, to, blocking}], missing: [{type,
name}]}; the statuses are ok, missing, error and waiting. Edges that nothing waits for, such as
those of mirrors, are dashed.

Exit status
  0  all of it is there
  1  failed while running: no server could be reached
  2  bad usage or a bad bootstrap
  3  something is missing or in error, or had no answer when the time of --for was up`

const graphExample = `  # The tree below every listener
  xdsctl graph --server localhost:18000 all

  # A picture of one listener
  xdsctl graph --server localhost:18000 -o dot lds:ingress | dot -Tsvg > ingress.svg`

// graphFlags are the flags of `xdsctl graph`.
type graphFlags struct {
	connFlags
	runFlags
	host   string
	output *choice
}

func newGraph() *cobra.Command {
	var f graphFlags
	cmd := &cobra.Command{
		Use:                   "graph [flags] ROOT",
		Short:                 "Print who names whom",
		Long:                  graphLong,
		Example:               graphExample,
		Args:                  oneRoot,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return graph(cmd, &f, args[0]) },
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *graphFlags) register(set *pflag.FlagSet) {
	f.connFlags.register(set)
	set.StringVar(&f.host, "host", "", "choose the virtual host of this `HOST`, as gRPC does")
	set.DurationVar(&f.stopAfter, "for", 0, "do not wait longer than this (default: as long as --resource-timeout lets)")
	f.output = outputFlag(set, "text for people, dot for Graphviz, mermaid for Markdown, json for programs", "text", "dot", "mermaid", "json")
}

// graph is `xdsctl graph` behind its flags.
func graph(cmd *cobra.Command, f *graphFlags, text string) error {
	root, all, err := parseRoot(text, f.host)
	if err != nil {
		return err
	}
	t, err := f.open(cmd)
	if err != nil {
		return err
	}
	r := newResolver(t, nowhere{}, false)
	r.settle = true
	if err := r.start(cmd.Context(), root, all); err != nil {
		return err
	}
	defer r.close()
	if f.wait(cmd, r.output.done, nil) == endAsked {
		return errInterrupted
	}
	g, faults := graphOf(r)
	if err := report.WriteGraph(cmd.OutOrStdout(), f.output.value, g); err != nil {
		return &statusError{statusFailed, err}
	}
	return r.graphVerdict(g, faults)
}

// nowhere prints nothing.
type nowhere struct{}

func (nowhere) Print(report.Record) error { return nil }

// graphOf is what the views watch, and who names it; faults are what is wrong with it.
func graphOf(r *resolver) (g report.Graph, faults map[report.Ref]error) {
	var roots []report.Ref
	nodes, edges := map[report.Ref]string{}, map[report.Edge]bool{}
	faults = map[report.Ref]error{}
	for v := range r.views() {
		roots = append(roots, rootRef(v.Root()))
		for _, w := range v.Dump().Watched {
			to := report.Ref{Type: w.Type, Name: w.Name}
			nodes[to] = nodeStatus(w)
			if w.Err != nil {
				faults[to] = w.Err
			}
			for _, by := range w.By {
				edges[report.Edge{From: report.Ref{Type: by.Type, Name: by.Name}, To: to, Blocking: by.Blocking}] = true
			}
		}
	}
	g = report.Graph{Nodes: []report.Node{}, Edges: []report.Edge{}, Missing: []report.Ref{}, Roots: roots}
	for ref, status := range nodes {
		g.Nodes = append(g.Nodes, report.Node{Ref: ref, Status: status})
		if status != report.NodeOK {
			g.Missing = append(g.Missing, ref)
		}
	}
	for e := range edges {
		g.Edges = append(g.Edges, e)
	}
	slices.SortFunc(g.Nodes, func(a, b report.Node) int { return a.Compare(b.Ref) })
	slices.SortFunc(g.Missing, report.Ref.Compare)
	slices.SortFunc(g.Edges, report.Edge.Compare)
	return g, faults
}

func nodeStatus(w view.Watched) string {
	switch {
	case w.Status == view.StatusOK:
		return report.NodeOK
	case w.Status == view.StatusWaiting:
		return report.NodeWaiting
	case errors.Is(w.Err, client.ErrDoesNotExist):
		return report.NodeMissing
	}
	return report.NodeError
}

// graphVerdict is the status of a graph, and tells what is wrong with it.
func (r *resolver) graphVerdict(g report.Graph, faults map[report.Ref]error) error {
	missing := g.Missing
	r.mu.Lock()
	if every := (report.Ref{Type: lds.Type.TypeURL(), Name: "*"}); r.trouble != nil || r.all && !r.synced {
		missing, faults[every] = append([]report.Ref{every}, missing...), r.trouble
	}
	r.mu.Unlock()
	status := statusBad
	for _, ref := range missing {
		err := faults[ref]
		if unreachable(err) {
			status = statusFailed
		}
		reason := "no answer when the time was up"
		if err != nil {
			reason = report.Clean(err.Error())
		}
		fmt.Fprintf(r.notes, "xdsctl: %s %q: %s\n", subscription.Short(ref.Type), ref.Name, reason)
	}
	if len(missing) > 0 {
		return &statusError{status, nil}
	}
	return nil
}

// unreachable says that an error is of the way to the server.
func unreachable(err error) bool {
	re, ok := errors.AsType[*client.ResourceError](err)
	return ok && (re.Kind == client.ErrorConnection || re.Kind == client.ErrorStream)
}
