package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// asked is a name that a program asks for, and the first watch that serves it.
type asked struct {
	name  string         // canonical, with its directives
	at    *xdstp.Locator // nil of a name without directives
	kind  resource.Kind  // of what is watched: a directory's if an entry of it is asked for
	watch *machine.Watch
}

var errLocatorScheme = errors.New("only locators of the scheme xdstp are followed")

// prepare checks what a watch is to be and finds its server.
func (c *Client) prepare(ctx context.Context, kind resource.Kind, name string) (asked, error) {
	if err := c.check(ctx, kind); err != nil {
		return asked{}, err
	}
	if name == wildcard {
		return asked{}, c.configError(kind, name, fmt.Errorf("%w: %q is every resource of a type; watch it with WatchAll", ErrCollection, name))
	}
	if hasDirectives(name) {
		return c.prepareLocator(kind, name)
	}
	r, err := c.table.Resolve(kind.TypeURL(), name)
	if err != nil {
		return asked{}, c.configError(kind, name, err)
	}
	w, err := c.place(kind, name, source{r.Old, r.Authority}, machine.Watch{Name: r.Name, Authority: r.Authority})
	return asked{name: r.Name, kind: kind, watch: w}, err
}

// hasDirectives says whether a name is a structured one with a fragment.
func hasDirectives(name string) bool { return xdstp.IsXDSTP(name) && strings.Contains(name, "#") }

// prepareLocator prepares a name with directives. Those that cannot be followed are a
// fault of the name, though they may never be needed.
func (c *Client) prepareLocator(kind resource.Kind, name string) (asked, error) {
	l, err := xdstp.ParseLocator(name)
	if err != nil {
		return asked{}, c.configError(kind, name, err)
	}
	a, err := c.prepareAt(kind, l)
	if err != nil {
		return asked{}, c.configError(kind, name, cause(err))
	}
	return a, nil
}

func (c *Client) prepareAt(kind resource.Kind, l xdstp.Locator) (asked, error) {
	for alt := altOf(l); alt != nil; alt = altOf(*alt) {
		if _, err := c.aim(kind, *alt); err != nil {
			return asked{}, fmt.Errorf("the alternative: %w", cause(err))
		}
	}
	return c.aim(kind, l)
}

// cause is what a [*ResourceError] says without the name of the resource, for a text that
// has one already.
func cause(err error) error {
	if re, ok := errors.AsType[*ResourceError](err); ok {
		return re.Err
	}
	return err
}

// aim makes the watch of what a locator names, or of the list collection that an entry of
// is meant. Its alternatives are not looked at.
func (c *Client) aim(kind resource.Kind, l xdstp.Locator) (asked, error) {
	if l.Scheme != xdstp.SchemeXDSTP {
		return asked{}, fmt.Errorf("locator %q: %w", l, errLocatorScheme)
	}
	if _, ok := entryOf(l); ok {
		kind = directoryKind{kind}
	}
	r, err := c.table.Resolve(kind.TypeURL(), l.Name.String())
	if err != nil {
		return asked{}, err
	}
	w, err := c.place(kind, r.Name, source{r.Old, r.Authority}, machine.Watch{Name: r.Name, Authority: r.Authority})
	return asked{name: l.String(), at: &l, kind: kind, watch: w}, err
}

// wrongName says that what [Client.aim] was given is at fault, and not the bootstrap.
func wrongName(err error) bool {
	_, bad := errors.AsType[*authority.NameError](err)
	return bad || errors.Is(err, errLocatorScheme)
}

// invite has a watch told in the lane of another name.
func (c *Client) invite(w *machine.Watch, lane int32) {
	w.Guest = w.Guest || w.Lane != lane
	w.Lane = lane
}

// altOf is the alternative that a locator directs to, nil if none.
func altOf(l xdstp.Locator) *xdstp.Locator {
	for _, d := range l.Directives {
		if d.Alt != nil {
			return d.Alt
		}
	}
	return nil
}

// entryOf is the inline entry that a locator directs to.
func entryOf(l xdstp.Locator) (name string, ok bool) {
	for _, d := range l.Directives {
		if d.Alt == nil {
			return d.Entry, true
		}
	}
	return "", false
}

// withEntry is where a list collection is redirected to, with the directive to the entry
// that is meant of what was asked for, if any.
func withEntry(to, asked xdstp.Locator) xdstp.Locator {
	if name, ok := entryOf(asked); ok {
		to.Directives = append(slices.Clone(to.Directives), xdstp.Directive{Entry: name})
	}
	return to
}

// withoutAlt is a locator of the same resource that has no alternative.
func withoutAlt(l xdstp.Locator) xdstp.Locator {
	plain := xdstp.Locator{Scheme: l.Scheme, Name: l.Name}
	if name, ok := entryOf(l); ok {
		plain.Directives = []xdstp.Directive{{Entry: name}}
	}
	return plain
}

// canonical is the text under which a name is kept.
func (c *Client) canonical(kind resource.Kind, name string) (string, error) {
	if hasDirectives(name) {
		l, err := xdstp.ParseLocator(name)
		return l.String(), err
	}
	r, err := c.table.Resolve(kind.TypeURL(), name)
	return r.Name, err
}
