package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
)

const resolveLong = `Follow the configuration from a root through all that it names, and print each consistent
state of the whole: the listener with its routes, their clusters, and the endpoints of these.

ROOT is one of
  lds:NAME   a listener: with --host as a gRPC client sees it, else as a proxy does
  rds:NAME   a route configuration, with --host one virtual host of it
  cds:NAME   a cluster
  the structured name (xdstp:) of one of these
  all        every listener, each with a configuration of its own: those of the collection that an Envoy
             bootstrap names (lds_resources_locator), or else of the wildcard

Events
  config   a new value; the next one is printed when all of it is there
  waiting  what is waited for has changed; in the end the list is empty
  error    there is no value, since the root is bad or missing
  removed  a listener went (all)
  dump     the value, what is waited for and what is watched, asked for on standard input

Commands on standard input, with --stdin: hold NAME and release NAME keep a cluster in the
configuration, as work in flight does, and are counted; dump; quit.

Exit status
  0  stopped as asked; with --once the first complete configuration was printed
  1  failed while running
  2  bad usage or a bad bootstrap
  3  with --once, the root or a part of the configuration is in error, as it is where no
     server can be reached, or the time of --for was up`

const resolveExample = `  # What a gRPC client of my-service would use
  xdsctl resolve --bootstrap grpc.json --host my-service lds:my-service

  # Everything that a proxy would be given, once, as JSON
  xdsctl resolve --server localhost:18000 --once -o json all

  # A cluster and its endpoints as they change, with jq
  xdsctl resolve --server localhost:18000 -o json cds:backend |
    jq -c 'select(.event == "config") | .clusters.backend.endpoints'`

// resolveFlags are the flags of `xdsctl resolve`.
type resolveFlags struct {
	connFlags
	runFlags
	host   string
	holds  []string
	output *choice
}

func newResolve() *cobra.Command {
	var f resolveFlags
	cmd := &cobra.Command{
		Use:                   "resolve [flags] ROOT",
		Short:                 "Follow a configuration through all that it names",
		Long:                  resolveLong,
		Example:               resolveExample,
		Args:                  oneRoot,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return resolve(cmd, &f, args[0]) },
	}
	f.register(cmd.Flags())
	return cmd
}

func oneRoot(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("want one ROOT, such as lds:NAME or all")
	}
	return nil
}

func (f *resolveFlags) register(set *pflag.FlagSet) {
	f.connFlags.register(set)
	set.StringVar(&f.host, "host", "", "choose the virtual host of this `HOST`, as gRPC does")
	set.StringArrayVar(&f.holds, "hold", nil, "keep this `CLUSTER` in the configuration; may be repeated")
	f.runFlags.register(set, "stop with the first complete configuration, or with an error")
	f.output = outputFlag(set, "text for people, json for programs: one object a line", "text", "json")
}

// resolve is `xdsctl resolve` behind its flags.
func resolve(cmd *cobra.Command, f *resolveFlags, text string) error {
	root, all, err := parseRoot(text, f.host)
	if err != nil {
		return err
	}
	if all && len(f.holds) > 0 {
		return errors.New("--hold keeps a cluster in the configuration of one root, and not of all listeners")
	}
	t, err := f.open(cmd)
	if err != nil {
		return err
	}
	r := newResolver(t, f.printer(cmd.OutOrStdout()), f.once, f.holds...)
	if err := r.start(cmd.Context(), root, all); err != nil {
		return err
	}
	defer r.close()
	for _, name := range f.holds {
		r.hold(name)
	}
	switch end := f.wait(cmd, r.output.done, r); {
	case end == endAsked:
		return nil
	case end == endTimeUp && f.once:
		fmt.Fprintln(t.notes, "xdsctl: the time is up and the configuration is not complete")
		return &statusError{statusBad, nil}
	case end == endTimeUp:
		return nil
	}
	return r.result()
}

func (f *resolveFlags) printer(out io.Writer) report.Printer {
	if f.output.value == "json" {
		return report.NewJSON(out, report.JSONOptions{})
	}
	return report.NewText(out, report.TextOptions{Color: wantsColor(out), Zone: time.Local})
}

func (r *resolver) inputEnded() {} // it goes on with its root

// command obeys one line of standard input and says whether it was the last.
func (r *resolver) command(line string) (quit bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	name := strings.TrimSpace(rest)
	var err error
	switch {
	case word == "":
	case word == "quit" && name == "":
		return true
	case word == "dump" && name == "":
		r.dump()
	case word == "hold" && name != "" && !r.all:
		r.hold(name)
	case word == "release" && name != "" && !r.all:
		err = r.release(name)
	case (word == "hold" || word == "release") && r.all:
		err = fmt.Errorf("%s is for the configuration of one root", word)
	default:
		err = fmt.Errorf("unknown command %.100q; want hold CLUSTER, release CLUSTER, dump or quit", strings.TrimSpace(line))
	}
	if err != nil {
		fmt.Fprintf(r.notes, "xdsctl: standard input: %v\n", err)
	}
	return false
}
