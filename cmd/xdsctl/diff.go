package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

const diffLong = `Compare two states by type and name, and changed resources field by field. A and B are each one of

  server:HOST:PORT    what a management server has: listeners and clusters by wildcard, and what they
                      name; the connection flags apply
  bootstrap:FILE      the same of the servers of a bootstrap
  csds:HOST:PORT      what a process has, by its client status service; the flags of TLS apply if neither
                      A nor B is server:HOST:PORT
  http://HOST:PORT    the same by Envoy's administration, of which /config_dump is read; also https
  FILE                a DiscoveryResponse in binary, text, JSON or YAML; single resources with "@type";
                      what xdsctl get -o yaml or -o json prints; Envoy's config dump
  DIRECTORY           all such files below it
  RECORDING           what the servers had in the end, of a file that xdsctl record wrote

What a server does not tell within --resource-timeout, be it all of its listeners, counts as what it
does not have, and standard error says so. If it says nothing at all, or if something of it is refused,
that is an error. With --no-validate what breaks a rule of its message is compared.

The scopes of a process have to agree on each resource.

Lists whose elements have names are compared by name. Secrets are compared and not printed.
With -o json it is a list of {type, name, change, fields: [{path, a, b}]}; change is added, removed
or changed.

Exit status
  0  both are the same
  1  failed while running: a file cannot be read, a server cannot be reached, or tells nothing
  2  bad usage or a bad bootstrap
  3  they are different`

const diffExample = `  # What a release would change
  xdsctl diff server:localhost:18000 ./resources

  # Do two replicas of a server agree?
  xdsctl diff --tls server:xds-1.example:443 server:xds-2.example:443`

// diffFlags are the flags of `xdsctl diff`.
type diffFlags struct {
	connFlags
	runFlags
	output      *choice
	showSecrets bool
	processTLS  tlsFlags // of csds:HOST:PORT and URLs
}

func newDiff() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:                   "diff [flags] A B",
		Short:                 "Compare two states",
		Long:                  diffLong,
		Example:               diffExample,
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("want two states, A and B")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return diff(cmd, &f, args[0], args[1]) },
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *diffFlags) register(set *pflag.FlagSet) {
	f.connFlags.register(set)
	_ = set.MarkHidden("server") // they are there
	_ = set.MarkHidden("bootstrap")
	set.DurationVar(&f.stopAfter, "for", 0, "do not wait longer than this for a server (default: as long as --resource-timeout lets)")
	f.output = outputFlag(set, "text for people, json for programs", "text", "json")
	set.BoolVar(&f.showSecrets, "show-secrets", false, "print the contents of Secrets and keys, which are redacted otherwise")
}

// diff is `xdsctl diff` behind its flags.
func diff(cmd *cobra.Command, f *diffFlags, textA, textB string) error {
	if f.server.target != "" || f.bootstrap != "" {
		return errors.New("--server and --bootstrap are not for diff: A or B is server:HOST:PORT or bootstrap:FILE")
	}
	if err := f.checkOwn(); err != nil {
		return err
	}
	a, b := parseOperand(textA), parseOperand(textB)
	if err := errors.Join(a.fault(), b.fault()); err != nil {
		return err
	}
	if a.kind != operandServer && b.kind != operandServer {
		names := serverFlagNames
		if a.kind == operandProcess || b.kind == operandProcess {
			names, f.processTLS = names[len(tlsFlagNames):], f.server.tlsFlags
		}
		for _, name := range names {
			if f.set.Changed(name) {
				return fmt.Errorf("--%s belongs to server:HOST:PORT", name)
			}
		}
	}
	var states [2][]resources.Resource
	for i, o := range []operand{a, b} {
		var err error
		if states[i], err = f.state(cmd, o); err != nil {
			return err
		}
		if err := scopesFault(o.text, states[i]); err != nil {
			return &statusError{statusFailed, err}
		}
	}
	ds, unknown := differences(states[0], states[1], f.showSecrets)
	if unknown > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "xdsctl: secrets that are not compared, since one side has %s in their place: %d\n", resourcejson.Redacted, unknown)
	}
	if err := report.WriteDiff(cmd.OutOrStdout(), f.output.value, ds); err != nil {
		return &statusError{statusFailed, err}
	}
	if len(ds) > 0 {
		return &statusError{statusBad, nil}
	}
	return nil
}

// scopesFault says what a state is not known of: a resource of which the scopes of a process have different contents.
func scopesFault(source string, rs []resources.Resource) error {
	held := map[report.Ref]*resources.Resource{}
	for i := range rs {
		r := &rs[i]
		ref := report.Ref{Type: r.Type, Name: r.Name}
		if other := held[ref]; other != nil && other.File == r.File && other.Scope != r.Scope && differ(other, r) {
			return fmt.Errorf("%s: %s %q is not the same in the scopes %q and %q of the process; compare a file with the documents of one scope, as xdsctl csds prints them",
				source, subscription.Short(r.Type), r.Name, other.Scope, r.Scope)
		}
		held[ref] = r
	}
	return nil
}

// differences are those between two states, by type and name. Of a resource that a state has more
// than once the last counts.
func differences(a, b []resources.Resource, showSecrets bool) (ds []report.Difference, unknown int) {
	type pair struct{ a, b *resources.Resource }
	pairs := map[report.Ref]pair{}
	for i := range a {
		ref := report.Ref{Type: a[i].Type, Name: a[i].Name}
		pairs[ref] = pair{&a[i], nil}
	}
	for i := range b {
		ref := report.Ref{Type: b[i].Type, Name: b[i].Name}
		pairs[ref] = pair{pairs[ref].a, &b[i]}
	}
	ds = []report.Difference{}
	for ref, p := range pairs {
		d := report.Difference{Type: ref.Type, Name: ref.Name, Fields: []report.FieldChange{}}
		switch {
		case p.a == nil:
			d.Change = report.ChangeAdded
		case p.b == nil:
			d.Change = report.ChangeRemoved
		default:
			d.Change = report.ChangeChanged
			fields, n := fieldChanges(p.a, p.b, showSecrets)
			if unknown += n; len(fields) == 0 {
				continue
			}
			d.Fields = fields
		}
		ds = append(ds, d)
	}
	slices.SortFunc(ds, func(a, b report.Difference) int {
		return report.Ref{Type: a.Type, Name: a.Name}.Compare(report.Ref{Type: b.Type, Name: b.Name})
	})
	return ds, unknown
}

func differ(a, b *resources.Resource) bool {
	fields, _ := fieldChanges(a, b, true)
	return len(fields) > 0
}

func fieldChanges(a, b *resources.Resource, showSecrets bool) (fields []report.FieldChange, unknown int) {
	whole, shown := resourcejson.Options{ShowSecrets: true}, resourcejson.Options{ShowSecrets: showSecrets}
	textA, textB := jsonOf(a, whole), jsonOf(b, whole)
	if bytes.Equal(textA, textB) {
		return nil, 0
	}
	return report.CompareJSON(textA, jsonOf(a, shown), textB, jsonOf(b, shown))
}

func jsonOf(r *resources.Resource, o resourcejson.Options) []byte {
	text := resourcejson.Unknown(r.Type, r.Raw)
	if r.Message != nil {
		text = o.Message(r.Message)
	}
	return resources.Opened(text, o.ShowSecrets)
}
