package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// choice is a flag with a few values; "" if there is no default.
type choice struct {
	value  string
	values []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.values, "|") }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.values, s) {
		last := len(c.values) - 1
		if last == 0 {
			return fmt.Errorf("want %s", c.values[0])
		}
		return fmt.Errorf("want %s or %s", strings.Join(c.values[:last], ", "), c.values[last])
	}
	c.value = s
	return nil
}

// outputFlag adds --output, and -o, with the formats of a command; the first is the default.
func outputFlag(set *pflag.FlagSet, usage string, formats ...string) *choice {
	c := &choice{formats[0], formats}
	set.VarP(c, "output", "o", usage)
	return c
}
