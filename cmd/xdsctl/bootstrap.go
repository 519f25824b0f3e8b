package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
)

const bootstrapLong = `Say what a bootstrap means, without connecting to anything: which servers answer for which names and
in which order, how they are reached and with which credentials, what is subscribed to from the
start, what is ignored or assumed, and what is wrong. FILE is gRPC's JSON, or Envoy's JSON or YAML;
without it the environment has the bootstrap, as for gRPC.

Headers and inline keys are never printed.

Exit status
  0  a client can be made of it
  1  failed while running
  2  it is bad, or bad usage`

const bootstrapExample = `  xdsctl bootstrap grpc.json

  # All servers, with jq
  xdsctl bootstrap -o json envoy.yaml | jq -r '.sources[].servers[].uri'`

func newBootstrap() *cobra.Command {
	var output *choice
	cmd := &cobra.Command{
		Use:                   "bootstrap [flags] [FILE]",
		Short:                 "Say what a bootstrap means",
		Long:                  bootstrapLong,
		Example:               bootstrapExample,
		Args:                  cobra.MaximumNArgs(1),
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return explainBootstrap(cmd.OutOrStdout(), output.value, args)
		},
	}
	output = outputFlag(cmd.Flags(), "text for people, json for programs", "text", "json")
	return cmd
}

// explainBootstrap is `xdsctl bootstrap` behind its flags.
func explainBootstrap(out io.Writer, format string, args []string) error {
	var f connFlags
	if len(args) > 0 {
		if f.bootstrap = args[0]; f.bootstrap == "" {
			return errors.New("FILE is empty")
		}
	}
	boot, source, err := f.load()
	if errors.Is(err, bootstrap.ErrNoBootstrap) {
		return fmt.Errorf("%w; give a FILE", bootstrap.ErrNoBootstrap)
	}
	if err == nil {
		err = usable(boot, source)
	}
	b := report.Bootstrap{Source: source, Faults: faultsOf(err)}
	if err != nil && len(args) > 0 {
		b.Source = args[0]
	}
	if boot != nil {
		b.Meaning = meaningOf(boot)
	}
	if err != nil && format == "text" {
		return &statusError{statusUsage, err}
	}
	if werr := report.WriteBootstrap(out, format, b); werr != nil {
		return &statusError{statusFailed, werr}
	}
	if err != nil {
		return &statusError{statusUsage, err}
	}
	return nil
}

// usable says whether a client can be made of a bootstrap, which dials nothing.
func usable(boot *bootstrap.Config, source string) error {
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	return c.Close()
}

// faultsOf are the single faults of an error.
func faultsOf(err error) []report.BootstrapFault {
	faults := []report.BootstrapFault{}
	var add func(error)
	add = func(err error) {
		var field *bootstrap.FieldError
		joined, several := err.(interface{ Unwrap() []error })
		switch {
		case err == nil:
		case several:
			for _, e := range joined.Unwrap() {
				add(e)
			}
		case errors.As(err, &field):
			faults = append(faults, report.BootstrapFault{Path: field.Path, Value: field.Value, Message: field.Reason})
		default:
			faults = append(faults, report.BootstrapFault{Message: err.Error()})
		}
	}
	add(err)
	return faults
}
