package main

import (
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
