package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/resource/wellknown"
)

// completeAll has shells complete the values of flags that are choices, and the types of
// subscriptions. All other arguments and flags are files to them, which they complete themselves.
func completeAll(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if ch, ok := f.Value.(*choice); ok {
				_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(ch.values, cobra.ShellCompDirectiveNoFileComp)) // once for each flag
			}
		})
		switch {
		case strings.HasSuffix(c.Use, " ROOT]"): // or subscriptions
			c.ValidArgsFunction = completeBegins(append(wellknownTypes(), "all"), false)
		case strings.Contains(c.Use, "SUBSCRIPTION"):
			c.ValidArgsFunction = completeBegins(wellknownTypes(), false)
		case strings.HasSuffix(c.Use, " ROOT"):
			c.ValidArgsFunction = completeBegins([]string{"lds:", "rds:", "cds:", "all"}, true)
		}
	}
}

// bashAlone has the script for bash do without the package bash-completion, of which a shell may have
// nothing: the words up to the cursor, which = and : do not end.
const bashAlone = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    __xdsctl_init_completion()
    {
        local line=${COMP_LINE:0:COMP_POINT}
        COMPREPLY=()
        read -ra words <<<"$line"
        [[ $line == *[[:space:]] ]] && words+=("")
        cword=$((${#words[@]} - 1))
        cur=${words[cword]} prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
`

// completeBash has the command that prints the script for bash add [bashAlone].
func completeBash(completion *cobra.Command) {
	bash, _, err := completion.Find([]string{"bash"})
	if err != nil {
		return // cobra has none any more
	}
	script := bash.RunE
	bash.RunE = func(cmd *cobra.Command, args []string) error {
		if err := script(cmd, args); err != nil {
			return err
		}
		_, err := io.WriteString(cmd.OutOrStdout(), bashAlone)
		return err
	}
	bash.Long = strings.Replace(bash.Long, "This script depends on the 'bash-completion' package.\nIf it is not installed already, you can install it via your OS's package manager.",
		"Without the package bash-completion have ~/.bashrc do what is done for the current session.", 1)
}

func wellknownTypes() (types []string) {
	for _, e := range wellknown.All() {
		types = append(types, e.Short)
	}
	return types
}

// completeBegins completes what an argument begins with, such as the type of a subscription; once says that
// there is one argument.
func completeBegins(begins []string, once bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
		for _, b := range begins {
			if strings.HasPrefix(b, begun) && !slices.Contains(args, b) && !(once && len(args) > 0) {
				all = append(all, b)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// plainUsage takes the marks of names of values out of the texts of flags, which cobra shows in
// completions as they are.
func plainUsage(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	}
}
