package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// operand is where a state comes from.
type operand struct {
	kind operandKind
	text string // without the kind
}

type operandKind uint8

const (
	operandPath operandKind = iota
	operandServer
	operandBootstrap
	operandProcess // by CSDS, or Envoy's administration
)

func parseOperand(text string) operand {
	for prefix, kind := range map[string]operandKind{"server:": operandServer, "bootstrap:": operandBootstrap, "csds:": operandProcess} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			return operand{kind, rest}
		}
	}
	if isURL(text) {
		return operand{operandProcess, text}
	}
	return operand{operandPath, text}
}

// fault is what is wrong with how a state is written.
func (o operand) fault() error {
	switch {
	case o.text == "":
		return errors.New("a state is empty; want server:HOST:PORT, bootstrap:FILE, csds:HOST:PORT, a URL, a recording, a file or a directory")
	case o.kind == operandServer:
		return targetFault(o.text)
	case o.kind == operandProcess:
		return processFault(o.text)
	}
	return nil
}

// processState is what a process has the contents of.
func processState(ctx context.Context, address string, secured tlsFlags, wait time.Duration) ([]resources.Resource, error) {
	f := processFlags{tlsFlags: secured, wait: cmp.Or(wait, defaultWait)}
	if !isURL(address) {
		address = "csds:" + address
	}
	p, err := f.ask(ctx, address)
	if err != nil {
		return nil, err
	}
	return p.Contents(), nil
}

// state reads the resources of an operand.
func (f *diffFlags) state(cmd *cobra.Command, o operand) (rs []resources.Resource, err error) {
	c := f.connFlags
	switch o.kind {
	case operandServer:
		c.server.target = o.text
		return f.serverState(cmd, &c)
	case operandBootstrap:
		c.server, c.bootstrap = serverFlags{}, o.text
		return f.serverState(cmd, &c)
	case operandProcess:
		return processState(cmd.Context(), o.text, f.processTLS, f.stopAfter)
	case operandPath:
		rs, err = pathState(o.text, cmd.ErrOrStderr())
		err = resources.Unread(err) // JSON is compared
	}
	if err != nil {
		return nil, &statusError{statusFailed, err}
	}
	return rs, nil
}

// pathState is what a recording ends with, or what is in files.
func pathState(path string, notes io.Writer) ([]resources.Resource, error) {
	moments, faults, err := recording.Read(path)
	if errors.Is(err, recording.ErrNotRecording) {
		return resources.Read(path)
	}
	if err != nil {
		return nil, err
	}
	n := len(faults)
	if faults = slices.DeleteFunc(faults, func(err error) bool { return err == recording.ErrCut }); len(faults) < n {
		fmt.Fprintf(notes, "xdsctl: %s: %v; it is left out\n", path, recording.ErrCut)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, &resources.FileError{File: path, Err: err}
	}
	return moments[len(moments)-1].State.Resources()
}

// serverState gets what a bootstrap asks for from the start, or else listeners and clusters, and
// then what these name.
func (f *diffFlags) serverState(cmd *cobra.Command, c *connFlags) (all []resources.Resource, err error) {
	t, err := c.openChecked(cmd)
	if err != nil {
		return nil, err
	}
	subs := t.plan.startup
	if len(subs) == 0 {
		if subs, err = parseAll([]string{"lds", "cds"}); err != nil {
			return nil, err
		}
	}
	asked := map[report.Ref]bool{}
	spoke := map[string]bool{} // servers that have sent a response
	for len(subs) > 0 {
		items, err := f.fetch(cmd, c, t, subs, spoke)
		if err != nil {
			return nil, err
		}
		subs = nil
		for _, it := range items {
			if it.Resource == nil {
				continue
			}
			all = append(all, resources.Resource{Type: it.Type, Name: it.Name, Version: it.Version, Message: it.Resource.Message, Raw: it.Resource.Raw})
			if it.Resource.Message == nil {
				continue
			}
			for _, ref := range resources.References(it.Resource.Message) {
				named := report.Ref{Type: ref.Type, Name: ref.Name}
				if asked[named] || ref.Type == cds.Type.TypeURL() { // those come by wildcard
					continue
				}
				asked[named] = true
				sub, err := subscription.Parse(subscription.TypeText(ref.Type) + ":" + ref.Name)
				if err == nil {
					subs = append(subs, sub)
				}
			}
		}
	}
	return all, nil
}

// fetch gets the first state of subscriptions, without what the server does not have. It fails where that state is not known:
// a resource is refused, or a server says nothing at all.
func (f *diffFlags) fetch(cmd *cobra.Command, c *connFlags, t *target, subs []subscription.Given, spoke map[string]bool) ([]report.Item, error) {
	got := &collector{}
	s, err := newSession(t, got, true)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.begin(subs)
	if f.wait(cmd, s.output.done, nil) == endAsked {
		return nil, errInterrupted
	}
	s.output.end(nil)
	items := got.items(s)
	got.spoke(spoke)
	if err := unknown(items, got.refused(), cmp.Or(c.server.target, c.bootstrap), spoke, s.notes); err != nil {
		return nil, &statusError{statusFailed, err}
	}
	return items, nil
}

// unknown says of what it is not known what a server has: what was refused of it or cannot be had, and what it did not tell
// if it has said nothing at all. Servers such as go-control-plane's say nothing of a type, or in delta of a name, of which
// they have nothing; of that a note says how it is compared.
func unknown(items []report.Item, refused []report.Answer, source string, spoke map[string]bool, notes io.Writer) error {
	var all []error
	for _, it := range items {
		if it.IsKnown() {
			continue
		}
		why := reasonOf(it)
		if it.TimedOut {
			why = it.Absence
		}
		err := fmt.Errorf("%s: %s %q: %s", cmp.Or(it.Server, source), subscription.Short(it.Type), it.Name, why)
		if it.TimedOut && spoke[it.Server] {
			fmt.Fprintf(notes, "xdsctl: %v; it is compared as what the server does not have\n", err)
			continue
		}
		all = append(all, err)
	}
	for _, a := range unnamed(items, refused) {
		all = append(all, fmt.Errorf("%s: %s: %s", a.Server, subscription.Short(a.Type), a.Error.Message))
	}
	return errors.Join(all...)
}

// unnamed are the refused responses of types of which no refused resource is among the items: what was refused has no name.
func unnamed(items []report.Item, refused []report.Answer) []report.Answer {
	return slices.DeleteFunc(refused, func(a report.Answer) bool {
		return slices.ContainsFunc(items, func(it report.Item) bool { return it.Type == a.Type && it.Status == report.StatusNACKED })
	})
}
