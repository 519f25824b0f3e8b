package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// strictHelp has cobra's own commands refuse what is no command, and keeps an error of writing help,
// which cobra drops.
func strictHelp(root *cobra.Command) (failed func() error) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, helpOn
		case "completion":
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			completeBash(c)
		}
	}
	out := &keeper{out: root.OutOrStdout()}
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.SetOut(out)
		help(c, args)
	})
	return func() error { return out.err }
}

// helpOn is `xdsctl help`.
func helpOn(cmd *cobra.Command, args []string) error {
	c, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown command %q for %q", rest[0], c.CommandPath())
	}
	if err != nil {
		return err
	}
	c.InitDefaultHelpFlag()
	return c.Help()
}

// keeper keeps the first error of an output.
type keeper struct {
	out io.Writer
	err error
}

func (k *keeper) Write(b []byte) (int, error) {
	if k.err != nil {
		return 0, k.err
	}
	n, err := k.out.Write(b)
	k.err = err
	return n, err
}
