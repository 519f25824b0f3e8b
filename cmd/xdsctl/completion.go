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
		case strings.Contains(c.Use, "SUBSCRIPTION"):
			c.ValidArgsFunction = completeTypes(wellknownTypes(), false)
		case strings.HasSuffix(c.Use, " ROOT"):
			c.ValidArgsFunction = completeTypes([]string{"lds", "rds", "cds"}, true)
		}
	}
}

func wellknownTypes() (types []string) {
	for _, e := range wellknown.All() {
		types = append(types, e.Short)
	}
	return types
}

// completeTypes completes the short name of a type, with what stands before the name of a resource; a
// subscription may do without.
func completeTypes(types []string, named bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
		if named && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, t := range types {
			if named {
				t += ":"
			}
			if strings.HasPrefix(t, begun) && !slices.Contains(args, t) {
				all = append(all, t)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
