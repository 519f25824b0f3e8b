package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
)

// Exit statuses. They are a stable interface.
const (
	statusOK     = 0 // stopped as asked
	statusFailed = 1 // failed while running
	statusUsage  = 2 // bad usage or a bad bootstrap
	statusBad    = 3 // the answer is no: something is missing, refused, different or invalid
)

// statusError is the end of the program with a status and, unless err is nil, a message.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// errInterrupted is the end of a command that was to have an answer.
var errInterrupted = &statusError{statusFailed, errors.New("interrupted")}

// run is the whole program; it returns the exit status. The end of ctx is an interrupt.
// Nothing is written after it returns, unless stdout blocks.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	errs := &lockedWriter{out: stderr}
	root := newRoot()
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		plainUsage(root)
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(errs)
	helpFailed := strictHelp(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = helpFailed()
	}
	if err == nil {
		return statusOK
	}
	var se *statusError
	switch {
	case errors.As(err, &se):
	case isWriteError(err):
		se = &statusError{statusFailed, err}
	default:
		se = &statusError{statusUsage, fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	}
	if se.err != nil && !isBrokenPipe(se.err) {
		fmt.Fprintf(errs, "xdsctl: %s\n", problem(se.err))
	}
	return se.status
}

// maxProblems is how many of the errors are told that are joined to one.
const maxProblems = 1000

// problem is the text of an error; each error that is joined to it has a line of its own.
func problem(err error) string {
	lines := linesOf(err)
	if more := len(lines) - maxProblems; more > 0 {
		lines = append(lines[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n  also: ")
}

// linesOf has a line for each error that an error is joined of, whatever ends of lines a server put into one.
func linesOf(err error) (lines []string) {
	text := err.Error()
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		if joined := errors.Join(all...); joined != nil && text == joined.Error() {
			for _, one := range all {
				lines = append(lines, linesOf(one)...)
			}
			return lines
		}
	case interface{ Unwrap() error }:
		inner := e.Unwrap()
		if inner == nil {
			break
		}
		before, after, found := strings.Cut(text, inner.Error())
		if lines = linesOf(inner); found && len(lines) > 1 {
			lines[0] = report.Clean(before) + lines[0]
			lines[len(lines)-1] += report.Clean(after)
			return lines
		}
	}
	return []string{report.Clean(text)}
}

// isBrokenPipe says that nobody reads what was written, which is no news to anybody.
func isBrokenPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// isWriteError says that output could not be written, as of a command that cobra brings.
func isWriteError(err error) bool {
	var pe *fs.PathError
	return isBrokenPipe(err) || errors.As(err, &pe) && pe.Op == "write"
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "xdsctl",
		Short: "Look at what an xDS management server sends",
		Long: `xdsctl subscribes to any xDS management server, as Envoy and gRPC do, and shows what
arrives. Begin with:

  xdsctl get --server localhost:18000 cds
  xdsctl watch --server localhost:18000 cds`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	version := root.Flags().Bool("version", false, "print the version")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *version {
			return printVersion(cmd, args)
		}
		return cmd.Help()
	}
	root.AddCommand(newGet(), newWatch(), newResolve(), newGraph(), newDiff(), newValidate(), newStatus(), newCSDS(), newDump(), newBootstrap(), newRecord(), newReplay(), newUI(), newVersion(), newMan())
	completeAll(root)
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE:  printVersion,
	}
}

func printVersion(cmd *cobra.Command, _ []string) error {
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), versionText()); err != nil {
		return &statusError{statusFailed, err}
	}
	return nil
}

// versionText is the version with the commit that the program was built from, if Go knows.
func versionText() string {
	text := fmt.Sprintf("xdsctl %s %s %s/%s", client.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value
		}
	}
	return text
}
