package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/transport"
)

const recordLong = `Subscribe, and write each request and response to a file as it passes, until an interrupt or until
--for is over. SUBSCRIPTION is written as for xdsctl watch, and the connection flags are the same.

Each line is a JSON object {time, direction, server, node, stream, method, variant, type, message}:
direction is request or response, node the ID of the client's node, stream the number of the stream,
and message the DiscoveryRequest or DiscoveryResponse (with the variant delta their Delta forms) in
JSON. The contents of Secrets and keys are redacted. A message that is none has message null.

xdsctl replay serves a recording, and xdsctl diff compares it.

Exit status
  0  interrupted, or the time is up
  1  failed while running: the file cannot be written
  2  bad usage or a bad bootstrap`

const recordExample = `  # What a server says to Envoy's listeners and clusters in ten seconds
  xdsctl record --server localhost:18000 --for 10s --to server.jsonl lds cds

  # How many responses of each type
  jq -r 'select(.direction == "response") | .type' server.jsonl | sort | uniq -c`

// recordFlags are the flags of `xdsctl record`.
type recordFlags struct {
	connFlags
	runFlags
	to string
}

func newRecord() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:                   "record [flags] --to FILE [SUBSCRIPTION ...]",
		Short:                 "Record the exchange with a server",
		Long:                  recordLong,
		Example:               recordExample,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return recordExchange(cmd, &f, args) },
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *recordFlags) register(set *pflag.FlagSet) {
	f.connFlags.register(set)
	set.StringVar(&f.to, "to", "", "write to `FILE`, which is made anew; - is standard output")
	set.DurationVar(&f.stopAfter, "for", 0, "stop after this time; 0 is to run until interrupted")
	outputFlag(set, "json, as the file always is: one object a line", "json")
}

// recordExchange is `xdsctl record` behind its flags.
func recordExchange(cmd *cobra.Command, f *recordFlags, args []string) (err error) {
	if f.to == "" {
		return errors.New("--to is missing; want a FILE")
	}
	t, err := f.open(cmd)
	if err != nil {
		return err
	}
	subs, err := t.subscriptions(args)
	if err != nil {
		return err
	}
	if len(subs) == 0 {
		return fmt.Errorf("nothing to record: %s asks for nothing by itself; give a SUBSCRIPTION such as cds or cds:foo", t.source)
	}
	out, err := create(cmd, f.to)
	if err != nil {
		return &statusError{statusFailed, err}
	}
	defer func() {
		if fault := out.Close(); err == nil && fault != nil {
			err = &statusError{statusFailed, fault}
		}
	}()
	var s *session
	w := recording.NewWriter(out, func(err error) { s.output.end(err) })
	t.wrap = func(b transport.Builder) transport.Builder { return recording.Builder(b, t.boot.Node.GetId(), w) }
	if s, err = newSession(t, silent{}, false); err != nil {
		return err
	}
	s.begin(subs)
	f.wait(cmd, s.output.done, nil)
	s.close()
	frames := "frames"
	if w.Frames() == 1 {
		frames = "frame"
	}
	fmt.Fprintf(t.notes, "xdsctl: recorded %d %s\n", w.Frames(), frames)
	return s.output.fault()
}

// create makes the file of a recording.
func create(cmd *cobra.Command, path string) (io.WriteCloser, error) {
	if path == "-" {
		return keptOpen{cmd.OutOrStdout()}, nil
	}
	return os.Create(path)
}

// keptOpen is standard output.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// silent prints nothing.
type silent struct{}

func (silent) Print(report.Record) error { return nil }
