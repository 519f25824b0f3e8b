package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/client"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a directory",
		Long:    "Write the manual pages, one for each command, into a directory, which is made if it is missing.",
		Example: "  xdsctl man ~/.local/share/man/man1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one DIR")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := writeMan(cmd.Root(), args[0]); err != nil {
				return &statusError{statusFailed, err}
			}
			return nil
		},
	}
}

// writeMan writes xdsctl.1 and a page for each command that help shows.
func writeMan(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.InitDefaultCompletionCmd()
	pages := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			pages = append(pages, c)
		}
	}
	for _, c := range pages {
		if err := os.WriteFile(filepath.Join(dir, manName(c)+".1"), manPage(c, pages), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the page of a command in the language of man (groff_man). Help is set as it was written.
func manPage(c *cobra.Command, pages []*cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"xdsctl %s\" \"xdsctl\"\n", strings.ToUpper(manName(c)), client.Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	use := c.UseLine()
	if c.HasSubCommands() && !c.HasParent() {
		use = c.Name() + " COMMAND [flags]"
	}
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(use))
	asWritten := func(head, text string) {
		if text != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", head, roff(text))
		}
	}
	asWritten("DESCRIPTION", c.Long)
	var flags bytes.Buffer
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		short := ""
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0s" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&flags, ".TP\n%s\n%s\n", roff(strings.TrimSpace(short+"--"+f.Name+" "+name)), roff(usage))
	})
	if flags.Len() > 0 {
		fmt.Fprintf(&b, ".SH OPTIONS\n%s", flags.Bytes())
	}
	asWritten("EXAMPLES", c.Example)
	var others []string
	for _, p := range pages {
		if p != c {
			others = append(others, manName(p)+"(1)")
		}
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff(strings.Join(others, ", ")))
	return b.Bytes()
}

// roff escapes text: what begins a line or holds a backslash would be a command.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
