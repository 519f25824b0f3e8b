package main

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/cobra"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/configdump"
)

const addressLong = `ADDRESS is HOST:PORT of a process with the Client Status Discovery Service (CSDS), such as a
program with package csds, or of gRPC; or a URL of Envoy's administration, such as http://localhost:15000,
whose /config_dump is read with the endpoints. A URL with a path is asked as it stands.`

const statusLong = `Print what a process says of each resource: its status, version, age and error. ` + addressLong + `

The statuses are those of CSDS: REQUESTED, ACKED, NACKED, DOES_NOT_EXIST, RECEIVED_ERROR, TIMEOUT. The
age is that of the value that is held. With -o json it is a list of {scope, type, name, status, version,
updated, error}. A URL gives only what is in use: what is missing, or was refused and never used, is not in it, and
--check does not see it there.

Exit status
  0  the process said it
  1  failed while running: the process cannot be reached
  2  bad usage
  3  with --check: a resource is refused, missing or timed out, or is asked for at a server that
     cannot be reached`

const statusExample = `  xdsctl status localhost:50051

  # Is all well?
  xdsctl status --check localhost:50051

  # What was refused, with jq
  xdsctl status -o json localhost:50051 | jq '.[] | select(.status == "NACKED")'`

func newStatus() *cobra.Command {
	var f processFlags
	var check bool
	var output *choice
	cmd := &cobra.Command{
		Use: "status [flags] ADDRESS", Short: "Print the status of what a process has",
		Long: statusLong, Example: statusExample, DisableFlagsInUseLine: true, Args: oneAddress,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.ask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := report.WriteStatus(cmd.OutOrStdout(), output.value, items(p)); err != nil {
				return &statusError{statusFailed, err}
			}
			if check && slices.ContainsFunc(p.Resources, isBad) {
				return &statusError{statusBad, nil}
			}
			if check && isURL(args[0]) {
				fmt.Fprintln(cmd.ErrOrStderr(), "xdsctl: Envoy's form has only what is in use; what is missing, or was refused and never used, is not in it")
			}
			return nil
		},
	}
	output = outputFlag(cmd.Flags(), "table for people, json for programs", "table", "json")
	cmd.Flags().BoolVar(&check, "check", false, "exit with 3 if a resource is refused, missing, timed out, or of a server that cannot be reached")
	f.register(cmd.Flags())
	return cmd
}

// isBad says that a resource is refused, missing or timed out, or that nothing is held and its server cannot be reached.
func isBad(h resources.Held) bool {
	switch h.Status {
	case report.StatusNACKED, report.StatusDoesNotExist, report.StatusReceivedError, report.StatusTimeout:
		return true
	case report.StatusRequested:
		return h.Error != nil
	}
	return false
}

func oneAddress(_ *cobra.Command, args []string) error {
	switch {
	case len(args) != 1:
		return errors.New("want one ADDRESS")
	case !isAddress(args[0]):
		return fmt.Errorf("%q is no ADDRESS; want HOST:PORT or a URL", args[0])
	}
	return nil
}

const csdsLong = `Print all that a process has. ` + addressLong + `

With -o json it is a list of {scope, type, name, status, version, updated, error, resource}; with -o yaml a
DiscoveryResponse for each type with the contents, a document of its own, which in a file of its own is a
file source; xdsctl validate reads all of them. Where a process has scopes each has documents of its own, which
begin with a comment such as # xdsctl scope: "xds:///shop" and are judged apart.`

const dumpLong = `Print all that a process has in one of three forms. ` + addressLong + `
FILE is a config dump of Envoy or an answer of CSDS in JSON; "-" is standard input.

--format envoy is Envoy's config dump, which tools for Envoy read; json is the list of xdsctl csds; yaml
is a DiscoveryResponse for each type. Envoy's form has what is in use; the list has the rest too.`

const exitLong = `

Secrets are redacted.

Exit status
  0  the process said it
  1  failed while running: the process cannot be reached, a file cannot be read
  2  bad usage`

func newCSDS() *cobra.Command {
	var f processFlags
	var output *choice
	var showSecrets bool
	cmd := &cobra.Command{
		Use: "csds [flags] ADDRESS", Short: "Print all that a process has",
		Long: csdsLong + exitLong, Example: "  xdsctl csds -o json localhost:50051", DisableFlagsInUseLine: true, Args: oneAddress,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.ask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return write(cmd, output.value, p, showSecrets)
		},
	}
	output = outputFlag(cmd.Flags(), "yaml for files, json for programs", "yaml", "json")
	cmd.Flags().BoolVar(&showSecrets, "show-secrets", false, secretsUsage)
	f.register(cmd.Flags())
	return cmd
}

const secretsUsage = "print the contents of Secrets and keys that the process shows, which are redacted otherwise; not with envoy"

func newDump() *cobra.Command {
	var f processFlags
	format := &choice{"envoy", []string{"envoy", "json", "yaml"}}
	var showSecrets bool
	cmd := &cobra.Command{
		Use: "dump [flags] ADDRESS|FILE", Short: "Print all that a process or a dump has, in Envoy's form or another",
		Long: dumpLong + exitLong, DisableFlagsInUseLine: true,
		Example: `  xdsctl dump localhost:50051 > config_dump.json

  # What an Envoy has, as files
  xdsctl dump --format yaml http://localhost:15000`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return errors.New("want one ADDRESS or FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.askOrRead(cmd.Context(), args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			return write(cmd, format.value, p, showSecrets)
		},
	}
	cmd.Flags().Var(format, "format", "form of the output")
	cmd.Flags().VarP(format, "output", "o", "the same")
	cmd.Flags().BoolVar(&showSecrets, "show-secrets", false, secretsUsage)
	f.register(cmd.Flags())
	return cmd
}

// write writes all that a process has.
func write(cmd *cobra.Command, format string, p *resources.Process, showSecrets bool) error {
	var err error
	switch out := cmd.OutOrStdout(); format {
	case "envoy":
		var b bytes.Buffer
		if err = configdump.Write(&b, configdump.Options{IncludeEDS: true}, source{p}); err == nil {
			_, err = out.Write(report.HarmlessJSON(b.Bytes()))
		}
	case "yaml":
		var held []report.Item
		for _, it := range items(p) {
			if it.Name != "" { // else no server sends it
				held = append(held, it.Item)
			}
		}
		err = report.WriteItems(out, format, held, report.JSONOptions{ShowSecrets: showSecrets})
	default:
		err = report.WriteHeld(out, items(p), report.JSONOptions{ShowSecrets: showSecrets})
	}
	if err != nil {
		return &statusError{statusFailed, err}
	}
	return nil
}

// items are the resources by scope, type and name.
func items(p *resources.Process) []report.Held {
	all := []report.Held{}
	for _, h := range p.Resources {
		it := report.Held{Item: report.Item{Scope: h.Scope, State: report.State{
			Type: h.Type, Name: h.Name, Status: h.Status, Version: h.Version, Error: errorOf(h),
		}}}
		if it.Status == "" {
			it.Status = report.StatusUnknown
		}
		if !h.Updated.IsZero() {
			updated := report.Time(h.Updated)
			it.Updated = &updated
		}
		if h.Content != nil {
			it.Size = len(h.Content.GetValue())
			it.Resource = &report.Resource{TypeURL: h.Content.GetTypeUrl(), Message: h.Message, Raw: h.Raw}
		}
		all = append(all, it)
	}
	slices.SortStableFunc(all, report.Held.Compare)
	return all
}

// errorOf is the error of the last failed update; its kind is that which a client gives for the status.
func errorOf(h resources.Held) *report.Error {
	if h.Error == nil {
		return nil
	}
	kind := client.ErrorConnection
	switch h.Status {
	case report.StatusNACKED:
		kind = client.ErrorRejected
	case report.StatusReceivedError, report.StatusDoesNotExist:
		kind = client.ErrorData
	case report.StatusTimeout:
		kind = client.ErrorTimeout
	}
	return &report.Error{Kind: string(kind), Message: h.Error.GetDetails(), Cause: h.Error.GetDetails()}
}

// source is a process as the source of a config dump.
type source struct{ *resources.Process }

func (s source) Node() *corev3.Node { return s.Process.Node }

func (s source) Resources(typeURL string) iter.Seq[configdump.Resource] {
	return func(yield func(configdump.Resource) bool) {
		for _, h := range s.Process.Resources {
			if h.Type != typeURL || h.Content != nil && h.Content.GetTypeUrl() != typeURL {
				continue
			}
			r := configdump.Resource{
				Name: h.Name, Version: h.Version, Content: h.Content, Updated: h.Updated, Error: h.Error,
				Status: adminv3.ClientResourceStatus(adminv3.ClientResourceStatus_value[h.Status]),
			}
			if !yield(r) {
				return
			}
		}
	}
}
