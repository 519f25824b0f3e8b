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

// asked is what a program asks for.
type asked struct {
	name string         // canonical, with its directives
	at   *xdstp.Locator // nil of a name without directives that is no list collection's URL
	list bool           // it is a list collection
}

var (
	errFilePath  = errors.New("the URL names no file of this host")
	errFileEntry = errors.New("the file holds a list collection; watch an entry of it (#entry=name), or all with WatchAll")
)

// wildcard is the name of everything.
const wildcard = "*"

// prepare checks what a watch of one resource is to be, which has not begun, and gives it its source.
func (c *Client) prepare(kind resource.AnyType, name string, v *view, w *machine.Watch) (_ asked, err error) {
	defer func() { err = c.configError(kind, name, err) }()
	a, r, err := c.read(kind, name, v)
	switch {
	case err != nil:
		return asked{}, err
	case a.at != nil:
		return a, c.placeAt(kind, *a.at, v, w)
	}
	return a, c.place(kind, r, v, w)
}

// read says what a name of one resource asks for, and without directives where that is. It makes no source.
func (c *Client) read(kind resource.AnyType, name string, v *view) (a asked, r authority.Resolved, err error) {
	switch {
	case name == wildcard:
		return a, r, fmt.Errorf("%w: %q is every resource of a type", ErrCollection, name)
	case hasDirectives(name):
		l, err := c.locator(kind, name, false, v.received)
		return asked{name: l.String(), at: &l}, r, err
	}
	if r, err = v.table.Resolve(kind.TypeURL(), name); err == nil {
		err = c.nameInContext(kind, &r, false, v.received)
	}
	return asked{name: r.Name}, r, err
}

// prepareAll is prepare for a watch of a collection.
func (c *Client) prepareAll(kind resource.AnyType, name string, v *view, w *machine.Watch) (_ asked, err error) {
	defer func() { err = c.configError(kind, name, err) }()
	if xdstp.IsXDSTP(name) || xdstp.IsFile(name) {
		l, err := c.locator(kind, name, true, v.received)
		isList := l.Scheme == xdstp.SchemeFile || l.Name.IsListCollection(kind.TypeURL())
		switch _, isEntry := l.Entry(); {
		case err != nil:
			return asked{}, err
		case isList && isEntry:
			return asked{}, fmt.Errorf("%w: an inline entry is one resource", ErrCollection)
		case isList:
			return c.placeList(kind, l.String(), &l, v, w)
		}
	} else if v.list && name != "" && name != wildcard && !strings.HasSuffix(name, "/*") {
		// LEDS-1: with "/*" at its end it would be a glob.
		return c.placeList(kind, name, nil, v, w)
	}
	r, err := v.table.ResolveCollection(kind.TypeURL(), name)
	if err == nil {
		err = c.nameInContext(kind, &r, true, v.received)
	}
	if err != nil {
		return asked{}, err
	}
	w.Wildcard, w.Explicit = true, v.explicit
	return asked{name: r.Name}, c.place(kind, r, v, w)
}

// placeList places the watch of a list collection; at is nil if its name is no URL.
func (c *Client) placeList(kind resource.AnyType, name string, at *xdstp.Locator, v *view, w *machine.Watch) (asked, error) {
	if _, err := c.kinds.typeOf(kind); err != nil {
		return asked{}, err
	}
	a, directory := asked{name: name, at: at, list: true}, c.directoryOf(kind)
	if at != nil {
		return a, c.placeAt(directory, *at, v, w)
	}
	r, err := v.table.Resolve(directory.TypeURL(), name)
	if err != nil {
		return asked{}, err
	}
	return a, c.place(directory, r, v, w)
}

// hasDirectives says whether a name is a structured one, or the URL of a file, with a fragment.
func hasDirectives(name string) bool {
	return (xdstp.IsXDSTP(name) || xdstp.IsFile(name)) && strings.Contains(name, "#")
}

// placeAt places the watch of what a program's own locator names. Alternatives that cannot be followed are a
// fault of it, though they may never be needed.
func (c *Client) placeAt(kind resource.AnyType, l xdstp.Locator, v *view, w *machine.Watch) error {
	for alt := l.Alt(); alt != nil; alt = alt.Alt() {
		if err := c.aim(kind, *alt, v, new(machine.Watch)); err != nil {
			return fmt.Errorf("the alternative: %w", err)
		}
	}
	if l.Scheme == xdstp.SchemeFile {
		return c.aimFile(kind, l, v, w)
	}
	return c.aim(kind, l, v, w)
}

// aim places the watch of the resource that a locator names; for a locator of an entry, that of the entry's
// list collection. It does not look at the alternatives.
func (c *Client) aim(kind resource.AnyType, l xdstp.Locator, v *view, w *machine.Watch) error {
	if err := listing.CheckScheme(l); err != nil {
		return err
	}
	if _, ok := l.Entry(); ok {
		kind = c.directoryOf(kind)
	}
	r, err := v.table.ResolveReceived(kind.TypeURL(), l.Name)
	if err != nil {
		return err
	}
	return c.place(kind, r, v, w)
}

// aimFile places the watch of the list collection in a file, which is a source of its own whose
// server is the file (xRFC TP1, "file:///" locators). What a list leads to is looked up as
// ever. Only a program's own names are of files: a server must not have them opened.
func (c *Client) aimFile(kind resource.AnyType, l xdstp.Locator, v *view, w *machine.Watch) error {
	if _, ok := l.Entry(); ok {
		kind = c.directoryOf(kind)
	}
	if _, ok := kind.(listing.Kind); !ok {
		return errFileEntry
	}
	url := listing.Plain(l).String()
	path, ok := file.PathOf(url)
	if !ok {
		return errFilePath
	}
	// XDSTP-6, FILE-5: the file is the server.
	from, err := v.table.WithPeer(bootstrap.Source{Servers: []bootstrap.ManagementServer{{
		URI: "file://" + path, Carrier: &bootstrap.File{Path: path},
	}}})
	if err != nil {
		return err
	}
	r, err := from.Resolve(kind.TypeURL(), url)
	if err != nil {
		return err
	}
	return c.place(kind, r, v, w)
}

// directoryOf is the type of list collections of a type.
func (c *Client) directoryOf(k resource.AnyType) listing.Kind { return listing.KindOf(k, &c.layouts) }

// locator reads what a program asks for, directives and all, in its context; received says that a server
// may have named it.
func (c *Client) locator(kind resource.AnyType, text string, collection, received bool) (xdstp.Locator, error) {
	l, err := xdstp.ParseLocator(text)
	if err != nil {
		return l, err
	}
	return c.inContext(kind, l, collection, received)
}

// nameInContext is inContext for a name that was found.
func (c *Client) nameInContext(kind resource.AnyType, r *authority.Resolved, collection, received bool) error {
	adds := c.config.Context != nil || len(c.nodeParams) > 0
	if !xdstp.IsXDSTP(r.Name) || !adds && !strings.Contains(r.Name, "?") {
		return nil
	}
	n, _ := xdstp.Parse(r.Name) // what was found is good
	l, err := c.inContext(kind, xdstp.Locator{Scheme: xdstp.SchemeXDSTP, Name: n}, collection, received)
	r.Call(l.Name, cmp.Or(r.Spelling, r.Name))
	return err
}

// inContext looks at the context parameters that the program gave, and adds what is the client's own: for
// collections of Listeners and Clusters fields of the node, for all what the program's hook says (xRFC TP1,
// "Context parameters").
func (c *Client) inContext(kind resource.AnyType, l xdstp.Locator, collection, received bool) (xdstp.Locator, error) {
	if !received {
		// CTX-1: xds.* is the client's.
		if err := l.CheckReserved(); err != nil {
			return l, err
		}
	}
	if l.Scheme == xdstp.SchemeFile {
		return l, nil
	}
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
		return l, err
	}
	l.Name = ctx.Apply(l.Name)
	return l, nil
}
