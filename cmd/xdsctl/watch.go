package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdswatch/xdswatch/client"
	_ "github.com/xdswatch/xdswatch/cmd/xdsctl/internal/envoytypes" // so that what stands inside resources is printed
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

const watchLong = `Subscribe to resources of a management server and print what happens to them, until
interrupted.

SUBSCRIPTION is one of
  cds                   every resource of the type, without names in the first request;
                        prefer it: all servers know it
  cds:*                 every resource of the type, by the name "*": many servers take
                        that for the name of a resource, and have no answer
  cds:foo               the resource foo
  TYPE_URL[:NAME]       the same with a full type URL, type.googleapis.com/…; any type
                        will do, also one that xdsctl does not know
  xdstp://AUTHORITY/TYPE/ID
                        a resource by its structured name; "…/*" is a glob collection,
                        and a TYPE that ends in Collection a list collection; the
                        directives #entry=NAME and #alt=URL are followed
  cds:file:///PATH      what the list collection in a file holds; of that, with
                        #entry=NAME, one
The short names of types are lds rds srds vhds cds eds leds sds rtds ecds.
An Envoy bootstrap that asks for listeners or clusters needs no subscription; with some,
only they are watched.

The server is given by --server, which speaks plaintext, or by a bootstrap: --bootstrap,
else $GRPC_XDS_BOOTSTRAP (a file), else $GRPC_XDS_BOOTSTRAP_CONFIG (the text itself).
Where lds_config or cds_config of an Envoy bootstrap is a source of its own, listeners or
clusters are asked for there: of a gRPC server, of one that is polled (its name is then
rest:CLUSTER), or of a file (file://PATH). Their initial_fetch_timeout, 15s if it is left
out, ends the wait for a first answer with an error. A transport_api_version of V2 is spoken.

Events
  update          a new or changed resource was accepted
  does-not-exist  there is no such resource, and a held one is gone
  error           there is no usable resource
  ambient-error   something is wrong but the held resource stays good, or: it is over
  synced          the first state of a wildcard or a collection is complete
  stream-up, stream-down
                  a stream to the server opened, ended
  ack, nack       a response was accepted, rejected
  dump            the state of everything, asked for on standard input
Each subscription has its own events, so a resource that two of them cover is told twice. In
JSON they have its text as "subscription", and as "asked" a name that is spelled otherwise.

Commands on standard input, with --stdin: watch SUBSCRIPTION, unwatch SUBSCRIPTION, dump,
quit. The end of the input is not quit.

Exit status
  0  stopped as asked
  1  failed while running
  2  bad usage or a bad bootstrap
  3  with --once, some subscription ended in does-not-exist or error, or had no answer
     when the time of --for was up`

const watchExample = `  # Every cluster and one listener of a server on this machine
  xdsctl watch --server localhost:18000 cds lds:ingress

  # What a gRPC program would see, as JSON, one look only
  xdsctl watch --bootstrap grpc.json --once --output json lds:my-service

  # What an Envoy would see, in the delta variant
  xdsctl watch --bootstrap envoy.yaml --variant delta

  # Which versions of endpoints go by, with jq
  xdsctl watch --server localhost:18000 --output json eds:backend |
    jq -r 'select(.event == "update") | .version'`

func newWatch() *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:                   "watch [flags] [SUBSCRIPTION ...]",
		Short:                 "Subscribe to resources and print what happens to them",
		Long:                  watchLong,
		Example:               watchExample,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return watch(cmd, &f, args) },
	}
	f.register(cmd.Flags())
	return cmd
}

// watch is `xdsctl watch` behind its flags.
func watch(cmd *cobra.Command, f *watchFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	subs, err := parseAll(args)
	if err != nil {
		return err
	}
	boot, source, err := f.load()
	if err != nil {
		return &statusError{statusUsage, err}
	}
	plan, err := newPlan(boot)
	if err != nil {
		return &statusError{statusUsage, fmt.Errorf("%s: %w", source, err)}
	}
	notes := cmd.ErrOrStderr()
	if len(args) == 0 {
		subs = plan.startup
	} else if left := plan.leftOut(subs); len(left) > 0 {
		fmt.Fprintf(notes, "xdsctl: %s also asks for %s, which is not watched since other subscriptions are given\n", source, strings.Join(left, " "))
	}
	if len(subs) == 0 && !f.stdin {
		return fmt.Errorf("nothing to watch: %s asks for nothing by itself; give a SUBSCRIPTION such as cds or cds:foo, or --stdin", source)
	}
	s := newSession(newPrinter(f, cmd.OutOrStdout(), several(boot)), plan, boot.Node.GetId(), f.once, newHints(boot, f.variant.value, notes))
	s.client, err = client.New(f.config(boot, slog.New(slog.NewTextHandler(notes, &slog.HandlerOptions{Level: f.level()})), s.trace()))
	if err != nil {
		return &statusError{statusUsage, fmt.Errorf("%s: %w", source, err)}
	}
	defer s.end()
	return s.run(cmd.Context(), f, subs, cmd.InOrStdin(), notes)
}

func parseAll(args []string) ([]subscription.Given, error) {
	var subs []subscription.Given
	var errs []error
	for _, arg := range args {
		sub, err := subscription.Parse(arg)
		if err != nil {
			errs = append(errs, err)
		}
		subs = append(subs, sub)
	}
	return subs, errors.Join(errs...)
}

func newPrinter(f *watchFlags, out io.Writer, servers bool) report.Printer {
	if f.output.value == "json" {
		return report.NewJSON(out, report.JSONOptions{ShowSecrets: f.showSecrets})
	}
	return report.NewText(out, report.TextOptions{Color: wantsColor(out), Zone: time.Local, Servers: servers})
}

// run watches until something ends it.
func (s *session) run(ctx context.Context, f *watchFlags, subs []subscription.Given, stdin io.Reader, notes io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lines <-chan string
	if f.stdin {
		lines = readLines(ctx, stdin, notes)
	}
	var timeUp <-chan time.Time
	if f.stopAfter > 0 {
		timeUp = time.After(f.stopAfter)
	}
	for _, sub := range s.watch(subs...) {
		fmt.Fprintf(notes, "xdsctl: %s %q is given twice\n", subscription.Short(sub.TypeURL), sub.Name)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.done:
			return s.result()
		case <-timeUp:
			if n := s.waiting(); s.once && n > 0 {
				fmt.Fprintf(notes, "xdsctl: the time is up and %d of the subscriptions had no answer\n", n)
			}
			return s.result()
		case line, ok := <-lines:
			if !ok {
				lines = nil
			} else if s.command(line, notes) {
				return nil
			}
		}
	}
}
