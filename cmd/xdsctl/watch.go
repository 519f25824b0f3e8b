package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	_ "github.com/xdswatch/xdswatch/cmd/xdsctl/internal/envoytypes" // so that what stands inside resources is printed
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
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

The server is given by --server, with --tls, --header, --node and their like, or by a bootstrap:
--bootstrap, else $GRPC_XDS_BOOTSTRAP (a file), else $GRPC_XDS_BOOTSTRAP_CONFIG (the text itself).
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
An update or synced that is from --store, and not from a server, is "stale".

Commands on standard input, with --stdin: watch SUBSCRIPTION, unwatch SUBSCRIPTION, dump,
quit. The end of the input is not quit.

Exit status
  0  stopped as asked
  1  failed while running
  2  bad usage or a bad bootstrap
  3  with --once, some subscription ended in does-not-exist or error, as it does where no
     server can be reached, or had no answer when the time of --for was up`

const watchExample = `  # Every cluster and one listener of a server on this machine
  xdsctl watch --server localhost:18000 cds lds:ingress

  # What a gRPC program would see, as JSON, one look only
  xdsctl watch --bootstrap grpc.json --once --output json lds:my-service

  # What an Envoy would see, in the delta variant
  xdsctl watch --bootstrap envoy.yaml --variant delta

  # Which versions of endpoints go by, with jq
  xdsctl watch --server localhost:18000 --output json eds:backend |
    jq -r 'select(.event == "update") | .version'`

// watchFlags are the flags of `xdsctl watch`.
type watchFlags struct {
	connFlags
	runFlags
	output      *choice
	showSecrets bool
}

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

func (f *watchFlags) register(set *pflag.FlagSet) {
	f.connFlags.register(set)
	f.runFlags.register(set, "stop when every subscription has had its first answer")
	f.output = outputFlag(set, "text for people, json for programs: one object a line", "text", "json")
	set.BoolVar(&f.showSecrets, "show-secrets", false, "print the contents of Secrets and keys in JSON, which are redacted otherwise")
	set.StringVar(&f.store, "store", "", "keep what was accepted in the directory `DIR`, and start with it while no server answers")
}

// watch is `xdsctl watch` behind its flags.
func watch(cmd *cobra.Command, f *watchFlags, args []string) error {
	t, err := f.open(cmd)
	if err != nil {
		return err
	}
	subs, err := t.subscriptions(args)
	if err != nil {
		return err
	}
	if len(subs) == 0 && !f.stdin {
		return fmt.Errorf("nothing to watch: %s asks for nothing by itself; give a SUBSCRIPTION such as cds or cds:foo, or --stdin", t.source)
	}
	s, err := newSession(t, f.printer(cmd.OutOrStdout(), several(t.boot)), f.once)
	if err != nil {
		return err
	}
	defer s.close()
	s.begin(subs)
	end := f.wait(cmd, s.output.done, s)
	if n := s.waiting(); end == endTimeUp && s.once && n > 0 {
		fmt.Fprintf(t.notes, "xdsctl: the time is up and %d of the subscriptions had no answer\n", n)
	}
	if end == endAsked {
		return nil
	}
	return s.result()
}

func (f *watchFlags) printer(out io.Writer, servers bool) report.Printer {
	if f.output.value == "json" {
		return report.NewJSON(out, report.JSONOptions{ShowSecrets: f.showSecrets})
	}
	return report.NewText(out, report.TextOptions{Color: wantsColor(out), Zone: time.Local, Servers: servers})
}
