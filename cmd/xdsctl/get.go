package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

const getLong = `Print the first state of each subscription, once. SUBSCRIPTION is written as for xdsctl
watch, and the connection flags are the same.

The table says name, type, version, size, server and status of each resource; the statuses are
those of CSDS. With -o json it is a list of {type, name, authority, status, version, server,
updated, error, size, resource}; with -o yaml a DiscoveryResponse for each type, a document of its
own, which in a file of its own is a file source; with -o name a SUBSCRIPTION for each resource that there is. What
is missing or refused is told on standard error too; an entry of a collection that is refused and has no name, there alone.

Exit status
  0  every resource that was asked for is there
  1  failed while running: no server could be reached
  2  bad usage or a bad bootstrap
  3  something is missing or refused, or had no answer when the time of --for was up`

const getExample = `  # The clusters of a server on this machine, and one listener
  xdsctl get --server localhost:18000 cds lds:ingress

  # One resource as YAML, over TLS
  xdsctl get --server xds.example:443 --ca-cert ca.pem --cert me.pem --key me-key.pem -o yaml eds:backend

  # How many endpoints each assignment has, with jq
  xdsctl get --server localhost:18000 -o json eds |
    jq -r '.[] | "\(.name) \([.resource.endpoints[]?.lbEndpoints[]?] | length)"'`

// getFlags are the flags of `xdsctl get`.
type getFlags struct {
	connFlags
	runFlags
	output      *choice
	showSecrets bool
}

func newGet() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:                   "get [flags] [SUBSCRIPTION ...]",
		Short:                 "Print resources once",
		Long:                  getLong,
		Example:               getExample,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return get(cmd, &f, args) },
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *getFlags) register(set *pflag.FlagSet) {
	f.connFlags.register(set)
	set.DurationVar(&f.stopAfter, "for", 0, "do not wait longer than this (default: as long as --resource-timeout lets)")
	f.output = outputFlag(set, "table for people, json for programs, yaml for files, name for other commands", "table", "json", "yaml", "name")
	set.BoolVar(&f.showSecrets, "show-secrets", false, "print the contents of Secrets and keys, which are redacted otherwise")
}

// get is `xdsctl get` behind its flags.
func get(cmd *cobra.Command, f *getFlags, args []string) error {
	t, err := f.open(cmd)
	if err != nil {
		return err
	}
	subs, err := t.subscriptions(args)
	if err != nil {
		return err
	}
	if len(subs) == 0 {
		return fmt.Errorf("nothing to get: %s asks for nothing by itself; give a SUBSCRIPTION such as cds or cds:foo", t.source)
	}
	got := &collector{}
	s, err := newSession(t, got, true)
	if err != nil {
		return err
	}
	defer s.close()
	s.begin(subs)
	if f.wait(cmd, s.output.done, nil) == endAsked {
		return errInterrupted
	}
	s.output.end(nil)
	items := got.items(s)
	if err := report.WriteItems(cmd.OutOrStdout(), f.output.value, items, report.JSONOptions{ShowSecrets: f.showSecrets}); err != nil {
		return &statusError{statusFailed, err}
	}
	return s.verdict(items, got.refused())
}

// collector keeps the newest state of each resource. It is a [report.Printer].
type collector struct {
	mu      sync.Mutex                  // authorities tell at the same time
	held    map[[2]string]*report.Item  // by type and name
	answers map[[2]string]report.Answer // the newest, by type and server
}

// Print implements [report.Printer].
func (c *collector) Print(r report.Record) error {
	if a, ok := r.(report.Answer); ok {
		c.answered(a)
	}
	about, ok := report.AboutOf(r)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{about.Type, about.Name}
	it := c.held[key]
	if it == nil {
		it = &report.Item{State: report.State{Type: about.Type, Name: about.Name, Authority: about.Authority}}
		if c.held == nil {
			c.held = map[[2]string]*report.Item{}
		}
		c.held[key] = it
	}
	it.Note(r)
	return nil
}

func (c *collector) answered(a report.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		c.answers = map[[2]string]report.Answer{}
	}
	c.answers[[2]string{a.Type, a.Server}] = a
}

// spoke notes which servers have sent a response.
func (c *collector) spoke(servers map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.answers {
		servers[a.Server] = true
	}
}

// refused are the newest responses that were refused, in part or as a whole, by type and server.
func (c *collector) refused() (all []report.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.answers {
		if a.Error != nil {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b report.Answer) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Server, b.Server))
	})
	return all
}

// items are the resources by type and name, and of collections those of which there is something
// wrong. The session has ended.
func (c *collector) items(s *session) []report.Item {
	items := []report.Item{}
	of := map[[2]string]bool{} // collections
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sub := range s.subs {
		key := [2]string{sub.TypeURL, sub.name}
		switch it := c.held[key]; {
		case it == nil && !sub.answered: // what came after the end is in its state alone
			items = append(items, report.Item{State: s.newSubscribed(sub.Given).state})
		case it != nil && sub.Collection:
			it.Collection = true
			of[key] = it.Status == report.StatusACKED
		}
	}
	for key, it := range c.held {
		if !of[key] {
			items = append(items, *it)
		}
	}
	slices.SortFunc(items, func(a, b report.Item) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	return items
}

// reasonOf is why a resource is missing, or what is wrong with it.
func reasonOf(it report.Item) string {
	reason := strings.ToLower(strings.ReplaceAll(it.Status, "_", " "))
	switch {
	case it.Error != nil:
		reason = report.Clean(it.Error.Message)
	case it.Status == report.StatusRequested:
		reason = "no answer when the time was up"
	case it.Absence != "":
		reason += " (" + it.Absence + ")"
	}
	return reason
}

// verdict is the status of a state, and tells what is wrong with it: with the items, and with what was refused of a
// collection and has no name.
func (s *session) verdict(items []report.Item, refused []report.Answer) error {
	if err := s.output.fault(); err != nil {
		return err
	}
	status := 0
	for _, it := range items {
		if it.Status == report.StatusACKED {
			continue
		}
		status = cmp.Or(status, statusBad)
		if e := it.Error; e != nil && (e.Kind == string(client.ErrorConnection) || e.Kind == string(client.ErrorStream)) {
			status = statusFailed
		}
		fmt.Fprintf(s.notes, "xdsctl: %s %q: %s\n", subscription.Short(it.Type), it.Name, reasonOf(it))
	}
	collections := map[string]bool{} // their types
	for _, sub := range s.subs {
		collections[sub.TypeURL] = collections[sub.TypeURL] || sub.Collection
	}
	for _, a := range unnamed(items, refused) {
		if collections[a.Type] {
			status = cmp.Or(status, statusBad)
			fmt.Fprintf(s.notes, "xdsctl: %s: %s\n", subscription.Short(a.Type), report.Clean(a.Error.Message))
		}
	}
	if status != 0 {
		return &statusError{status, nil}
	}
	return nil
}
