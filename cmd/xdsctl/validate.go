package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/validation"
)

const validateLong = `Judge resources in files, by the rules of their messages (PGV), also in what an Any contains, and by
what they name. With --as grpc it is gRPC's rules instead of PGV, and with --as envoy those of Envoy that
can be known beside PGV. PATH is a file or a directory with such files: a DiscoveryResponse in binary, text,
JSON or YAML, single resources with "@type", what xdsctl get -o yaml or -o json prints, or Envoy's
config dump. "-" is YAML or JSON on standard input; csds:HOST:PORT and http://HOST:PORT are what a process
has, for which the flags of TLS are.

Rules
  syntax        a file can be read
  name          a resource has a name
  duplicate     a name is given once
  field         a rule of the message
  any           an Any holds what its type says
  unknown-type  a type is not known here, so its content is not judged (a warning)
  reference     the route configurations, clusters, endpoints and secrets that a resource names
                are there (a warning; with --closed an error)
  more          more is wrong with a file than the thousand findings that are listed
  grpc-…        what gRPC's client wants (with --as grpc)
  envoy-…       what Envoy wants (with --as envoy)

docs/VALIDATION.md lists them all.

With -o json it is a list of {file, type, name, path, rule, message, severity}. No value is quoted.

Exit status
  0  nothing is wrong, but for warnings
  1  failed while running: there is no such file
  2  bad usage
  3  something is wrong`

const validateExample = `  xdsctl validate ./resources

  # Nothing may be missing
  xdsctl validate --closed ./resources

  # Will gRPC take it? Names of certificate providers are looked for in the bootstrap
  xdsctl validate --as grpc --bootstrap bootstrap.json ./resources

  # What a server has now
  xdsctl get --server localhost:18000 -o yaml lds cds | xdsctl validate -`

func newValidate() *cobra.Command {
	var o validation.Options
	var output *choice
	var boot string
	var secured tlsFlags
	as := choice{values: []string{string(validation.AsGRPC), string(validation.AsEnvoy)}}
	cmd := &cobra.Command{
		Use:                   "validate [flags] PATH...",
		Short:                 "Judge resources in files",
		Long:                  validateLong,
		Example:               validateExample,
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("want a PATH")
			}
			for _, path := range args {
				switch o := parseOperand(path); o.kind {
				case operandServer, operandBootstrap:
					return fmt.Errorf("%s: no management server is asked; pipe what xdsctl get -o yaml prints to xdsctl validate -", path)
				case operandProcess:
					if err := o.fault(); err != nil {
						return err
					}
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.As = validation.Judges(as.value)
			if err := secured.checkFor(cmd.Flags(), args); err != nil {
				return err
			}
			if cmd.Flags().Changed("bootstrap") {
				if o.Providers, err = providersOf(boot, o.As); err != nil {
					return err
				}
			}
			return validate(cmd, args, secured, o, output.value)
		},
	}
	cmd.Flags().BoolVar(&o.Closed, "closed", false, "nothing is elsewhere: a reference to what is not in the files is an error")
	cmd.Flags().Var(&as, "as", "judge as gRPC or as Envoy does (default: by the rules of the messages)")
	cmd.Flags().StringVar(&boot, "bootstrap", "", "bootstrap `FILE` whose certificate providers there are, with --as grpc (default: their names are not judged)")
	secured.register(cmd.Flags(), " to csds:HOST:PORT and https://HOST:PORT", "certificate of the process (default the host of its address)")
	output = outputFlag(cmd.Flags(), "text for people, json for programs", "text", "json")
	return cmd
}

// checkFor finds flags of TLS that cannot be used, or that no process is there for.
func (f *tlsFlags) checkFor(set *pflag.FlagSet, paths []string) error {
	asked := slices.ContainsFunc(paths, func(path string) bool { return parseOperand(path).kind == operandProcess })
	for _, name := range tlsFlagNames {
		if !asked && set.Changed(name) {
			return fmt.Errorf("--%s belongs to csds:HOST:PORT and https://HOST:PORT", name)
		}
	}
	_, err := f.config()
	return err
}

// providersOf are the certificate providers of a bootstrap.
func providersOf(path string, as validation.Judges) (map[string]bool, error) {
	if as != validation.AsGRPC {
		return nil, errors.New("--bootstrap belongs to --as grpc; nobody else has certificate providers")
	}
	boot, err := bootstrap.Load(path, bootstrap.AllowV2())
	if err != nil {
		return nil, &statusError{statusUsage, explain(err)}
	}
	names := map[string]bool{}
	for name := range boot.CertificateProviders {
		names[name] = true
	}
	return names, nil
}

// validate is `xdsctl validate` behind its flags.
func validate(cmd *cobra.Command, paths []string, secured tlsFlags, o validation.Options, format string) error {
	var all []resources.Resource
	var broken []validation.Finding
	for _, path := range paths {
		rs, err := read(cmd, path, secured)
		if cmd.Context().Err() != nil { // the input may have been cut
			return errInterrupted
		}
		if se, ok := errors.AsType[*statusError](err); ok {
			return se
		}
		if _, missing := errors.AsType[*fs.PathError](err); missing {
			return &statusError{statusFailed, err}
		}
		all = append(all, rs...)
		switch {
		case err != nil:
			broken = append(broken, validation.Broken(path, err)...)
		case len(rs) == 0:
			fmt.Fprintf(cmd.ErrOrStderr(), "xdsctl: %s: there is no resource in it\n", path)
		}
	}
	findings := append(validation.Judge(all, o), broken...)
	validation.Sort(findings)
	findings = validation.Bound(findings)
	if err := writeFindings(cmd.OutOrStdout(), format, findings); err != nil {
		return &statusError{statusFailed, err}
	}
	for _, f := range findings {
		if f.Severity == validation.Error {
			return &statusError{statusBad, nil}
		}
	}
	return nil
}

// read reads a file, a directory, a recording, standard input or what a process has, and what there is beside what is bad.
func read(cmd *cobra.Command, path string, secured tlsFlags) (rs []resources.Resource, err error) {
	switch o := parseOperand(path); {
	case o.kind == operandProcess:
		rs, err = processState(cmd.Context(), o.text, secured, 0)
	case path == "-":
		return resources.ReadFrom(cmd.InOrStdin(), path)
	default:
		rs, err = pathState(path, cmd.ErrOrStderr())
	}
	for i := range rs {
		rs[i].File = cmp.Or(rs[i].File, path)
	}
	return rs, err
}

func writeFindings(out io.Writer, format string, fs []validation.Finding) error {
	if format == "json" {
		return report.WriteJSON(out, fs)
	}
	for _, f := range fs {
		where := f.File
		if f.Type != "" {
			where += fmt.Sprintf(": %s %q", subscription.Short(f.Type), f.Name)
		}
		if f.Path != "" {
			where += " " + f.Path
		}
		line := fmt.Sprintf("%s: %s: %s (%s)", where, f.Severity, f.Message, f.Rule)
		if _, err := fmt.Fprintln(out, report.Clean(line)); err != nil {
			return err
		}
	}
	return nil
}
