package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport/file"
	"github.com/xdswatch/xdswatch/xdstp"
)

// asked is a name that a program asks for, and the first watch that serves it or is to.
type asked struct {
	name  string           // canonical, with its directives
	at    *xdstp.Locator   // nil of a name without directives
	kind  resource.AnyType // of what is watched: a directory's if an entry of it is asked for
	view  *view
	watch *machine.Watch
}

var (
	errFilePath  = errors.New("the URL names no file of this host")
	errFileEntry = errors.New("the file holds a list collection; watch an entry of it (#entry=name), or all with WatchAll")
)

// prepare checks what a watch is to be, which has not begun, and finds its source.
func (c *Client) prepare(kind resource.AnyType, name string, v *view, w *machine.Watch) (asked, error) {
	if name == wildcard {
		return asked{}, c.configError(kind, name, fmt.Errorf("%w: %q is every resource of a type", ErrCollection, name))
	}
	if hasDirectives(name) {
		return c.prepareLocator(kind, name, v, w)
	}
	r, err := v.table.Resolve(kind.TypeURL(), name)
	if err == nil {
		err = c.inContext(kind, &r, false)
	}
	// ERR-12: the watch does not begin.
	if err != nil {
		return asked{}, c.configError(kind, name, err)
	}
	return asked{name: r.Name, kind: kind, view: v, watch: w}, c.place(kind, r, v, w)
}

// hasDirectives says whether a name is a structured one, or the URL of a file, with a fragment.
func hasDirectives(name string) bool {
	return (xdstp.IsXDSTP(name) || xdstp.IsFile(name)) && strings.Contains(name, "#")
}

// prepareLocator prepares a name with directives. Those that cannot be followed are a
// fault of the name, though they may never be needed.
func (c *Client) prepareLocator(kind resource.AnyType, name string, v *view, w *machine.Watch) (asked, error) {
	l, err := c.locator(kind, name, false, v.received)
	if err != nil {
		return asked{}, c.configError(kind, name, err)
	}
	a, err := c.prepareAt(kind, l, v, w)
	if err != nil {
		return asked{}, c.configError(kind, name, cause(err))
	}
	return a, nil
}

func (c *Client) prepareAt(kind resource.AnyType, l xdstp.Locator, v *view, w *machine.Watch) (asked, error) {
	for alt := l.Alt(); alt != nil; alt = alt.Alt() {
		if _, err := c.aim(kind, *alt, v, new(machine.Watch)); err != nil {
			return asked{}, fmt.Errorf("the alternative: %w", cause(err))
		}
	}
	if l.Scheme == xdstp.SchemeFile {
		return c.aimFile(kind, l, v, w)
	}
	return c.aim(kind, l, v, w)
}

// aimFile makes the watch of the list collection in a file, which is a source of its own whose
// server is the file (xRFC TP1, "file:///" locators). What a list leads to is looked up as
// ever. Only a program's own names are of files: a server must not have them opened.
func (c *Client) aimFile(kind resource.AnyType, l xdstp.Locator, v *view, w *machine.Watch) (asked, error) {
	if _, ok := l.Entry(); ok {
		kind = c.directoryOf(kind)
	}
	if _, ok := kind.(listing.Kind); !ok {
		return asked{}, errFileEntry
	}
	url := listing.Plain(l).String()
	path, ok := file.PathOf(url)
	if !ok {
		return asked{}, errFilePath
	}
	// XDSTP-6, FILE-5: the file is the server.
	from, err := v.table.WithPeer(bootstrap.Source{Servers: []bootstrap.ManagementServer{{
		URI: "file://" + path, Carrier: &bootstrap.File{Path: path},
	}}})
	if err != nil {
		return asked{}, err
	}
	r, err := from.Resolve(kind.TypeURL(), url)
	if err != nil {
		return asked{}, err
	}
	return asked{name: l.String(), at: &l, kind: kind, view: v, watch: w}, c.place(kind, r, v, w)
}

// directoryOf is the type of list collections of a type.
func (c *Client) directoryOf(k resource.AnyType) listing.Kind { return listing.KindOf(k, &c.layouts) }

// cause is what a [*ResourceError] says without the name of the resource, for a text that
// has one already.
func cause(err error) error {
	if re, ok := errors.AsType[*ResourceError](err); ok {
		return re.Err
	}
	return err
}

// aim makes the watch of the resource that a locator names; for a locator of an entry, that of the entry's
// list collection. It does not look at the alternatives.
func (c *Client) aim(kind resource.AnyType, l xdstp.Locator, v *view, w *machine.Watch) (asked, error) {
	if err := listing.CheckScheme(l); err != nil {
		return asked{}, err
	}
	if _, ok := l.Entry(); ok {
		kind = c.directoryOf(kind)
	}
	r, err := v.table.ResolveReceived(kind.TypeURL(), l.Name)
	if err != nil {
		return asked{}, err
	}
	return asked{name: l.String(), at: &l, kind: kind, view: v, watch: w}, c.place(kind, r, v, w)
}

// locator reads what a program asks for, directives and all, in its context; received says that a server
// may have named it.
func (c *Client) locator(kind resource.AnyType, text string, collection, received bool) (xdstp.Locator, error) {
	l, err := xdstp.ParseLocator(text)
	if err != nil {
		return l, err
	}
	if err := l.CheckReserved(); err != nil && !received {
		return l, err
	}
	if l.Scheme != xdstp.SchemeFile {
		l.Name, err = c.applyContext(kind, l.Name, collection)
	}
	return l, err
}

// inContext gives a name that was found the parameters that the client adds.
func (c *Client) inContext(kind resource.AnyType, r *authority.Resolved, collection bool) error {
	if !xdstp.IsXDSTP(r.Name) || c.config.Context == nil && len(c.nodeParams) == 0 {
		return nil
	}
	n, err := xdstp.Parse(r.Name)
	if err != nil {
		return err
	}
	n, err = c.applyContext(kind, n, collection)
	r.Call(n, cmp.Or(r.Spelling, r.Name))
	return err
}

// applyContext adds what is the client's own: for collections of Listeners and Clusters
// fields of the node, for all what the program's hook says (xRFC TP1, "Context parameters").
func (c *Client) applyContext(kind resource.AnyType, n xdstp.Name, collection bool) (xdstp.Name, error) {
	var ctx xdstp.Context
	// CTX-3: the program's hook.
	if c.config.Context != nil {
		ctx = c.config.Context(kind.TypeURL())
	}
	if collection && kind.FullState() {
		// CTX-2: the node's parameters, for collections.
		ctx.Node = slices.Concat(c.nodeParams, ctx.Node)
	}
	if err := ctx.Check(); err != nil {
		return n, err
	}
	return ctx.Apply(n), nil
}

// canonical is the text under which a name is kept.
func (c *Client) canonical(kind resource.AnyType, name string) (string, error) {
	if hasDirectives(name) {
		l, err := c.locator(kind, name, false, true)
		return l.String(), err
	}
	canonical, err := xdstp.Canonical(name)
	if err != nil {
		return "", err
	}
	r := authority.Resolved{Name: canonical}
	err = c.inContext(kind, &r, false)
	return r.Name, err
}
