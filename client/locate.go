package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/follow"
	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport/file"
	"github.com/xdswatch/xdswatch/xdstp"
)

// asked is what a program asks for.
type asked struct {
	follow.Asked
	kind     resource.AnyType
	wildcard bool // it is every resource of the type, or a glob
	to       target
}

// target is what is subscribed to: for a list collection, and for an entry of one, the list's directory.
type target struct {
	kind resource.AnyType
	authority.Resolved
}

var (
	errFilePath  = errors.New("the URL names no file of this host")
	errFileEntry = errors.New("the file holds a list collection; watch an entry of it (#entry=name), or all with WatchAll")
)

// wildcard is the name of everything.
const wildcard = "*"

// read says what a name asks for, that of one resource or of a whole collection, and finds that. It makes no source.
func (v *view) read(kind resource.AnyType, name string, collection bool) (a asked, err error) {
	a.TypeURL, a.kind, a.to.kind = kind.TypeURL(), kind, kind
	switch {
	case !collection && name == wildcard:
		return a, fmt.Errorf("%w: %q is every resource of a type", ErrCollection, name)
	case (xdstp.IsXDSTP(name) || xdstp.IsFile(name)) && (collection || strings.Contains(name, "#")):
		l, err := xdstp.ParseLocator(name)
		if err == nil {
			l, err = v.inContext(kind, l, collection)
		}
		if err != nil {
			return a, err
		}
		of := kind
		if collection && (l.Scheme == xdstp.SchemeFile || l.Name.IsListCollection(kind.TypeURL())) {
			if _, isEntry := l.Entry(); isEntry {
				return a, fmt.Errorf("%w: an inline entry is one resource", ErrCollection)
			}
			a.List, of = true, v.client.directoryOf(kind)
		}
		if a.List || !collection {
			a.Name, a.At = l.String(), &l
			a.to, err = v.find(of, l)
			return a, err
		}
	case collection && v.list && name != "" && name != wildcard && !strings.HasSuffix(name, "/*"):
		// LEDS-1: with "/*" at its end it would be a glob.
		a.Name, a.List, a.to.kind = name, true, v.client.directoryOf(kind)
		a.to.Resolved, err = v.table.Resolve(a.to.kind.TypeURL(), name)
		return a, err
	}
	if collection {
		a.to.Resolved, err = v.table.ResolveCollection(kind.TypeURL(), name)
	} else {
		a.to.Resolved, err = v.table.Resolve(kind.TypeURL(), name)
	}
	if err == nil {
		err = v.nameInContext(&a.to, collection)
	}
	a.Name, a.wildcard = a.to.Name, collection
	return a, err
}

// find finds the resource that a locator names; for a locator of an entry, that of the entry's list collection.
func (v *view) find(kind resource.AnyType, l xdstp.Locator) (to target, err error) {
	if _, ok := l.Entry(); ok {
		kind = v.client.directoryOf(kind)
	}
	to.kind = kind
	if l.Scheme == xdstp.SchemeFile {
		to.Resolved, err = v.findFile(kind, listing.Plain(l).String())
	} else {
		to.Resolved, err = v.table.ResolveReceived(kind.TypeURL(), l.Name)
	}
	return to, err
}

// findFile finds the list collection in a file, which is a source of its own whose server is the file (xRFC TP1,
// "file:///" locators). What a list leads to is looked up as ever. Only a program's own names are of files: a server
// must not have them opened.
func (v *view) findFile(kind resource.AnyType, url string) (r authority.Resolved, err error) {
	if _, ok := kind.(listing.Kind); !ok {
		return r, errFileEntry
	}
	path, ok := file.PathOf(url)
	if !ok {
		return r, errFilePath
	}
	// XDSTP-6, FILE-5: the file is the server.
	from, err := v.table.WithPeer(bootstrap.Source{Servers: []bootstrap.ManagementServer{{
		URI: "file://" + path, Carrier: &bootstrap.File{Path: path},
	}}})
	if err != nil {
		return r, err
	}
	return from.Resolve(kind.TypeURL(), url)
}

// directoryOf is the type of list collections of a type.
func (c *Client) directoryOf(k resource.AnyType) listing.Kind { return listing.KindOf(k, &c.layouts) }

// nameInContext is inContext for a name that was found.
func (v *view) nameInContext(to *target, collection bool) error {
	adds := v.client.config.Context != nil || len(v.client.nodeParams) > 0
	if !xdstp.IsXDSTP(to.Name) || !adds && !strings.Contains(to.Name, "?") {
		return nil
	}
	n, _ := xdstp.Parse(to.Name) // what was found is good
	l, err := v.inContext(to.kind, xdstp.Locator{Scheme: xdstp.SchemeXDSTP, Name: n}, collection)
	to.Call(l.Name, cmp.Or(to.Spelling, to.Name))
	return err
}

// inContext looks at the context parameters that the program gave, and adds what is the client's own: for
// collections of Listeners and Clusters fields of the node, for all what the program's hook says (xRFC TP1,
// "Context parameters"). Alternatives are named by the program too.
func (v *view) inContext(kind resource.AnyType, l xdstp.Locator, collection bool) (xdstp.Locator, error) {
	if !v.received {
		// CTX-1: xds.* is the client's.
		if err := l.CheckReserved(); err != nil {
			return l, err
		}
	}
	var one xdstp.Context
	// CTX-3: the program's hook.
	if v.client.config.Context != nil {
		one = v.client.config.Context(kind.TypeURL())
	}
	all := one
	if kind.FullState() {
		// CTX-2: the node's parameters, for collections of types whose responses hold everything, as Listeners and Clusters.
		all.Node = slices.Concat(v.client.nodeParams, one.Node)
	}
	if err := all.Check(); err != nil {
		return l, err
	}
	return withContext(l, one, all, collection), nil
}

// withContext gives a locator and its alternatives the parameters of one resource or, if they lead to a collection or to an entry
// of one, those of all.
func withContext(l xdstp.Locator, one, all xdstp.Context, collection bool) xdstp.Locator {
	_, entry := l.Entry()
	switch {
	case l.Scheme == xdstp.SchemeFile:
	case collection || entry:
		l.Name = all.Apply(l.Name)
	default:
		l.Name = one.Apply(l.Name)
	}
	l.Directives = slices.Clone(l.Directives)
	for i := range l.Directives {
		if d := &l.Directives[i]; d.Alt != nil {
			alt := withContext(*d.Alt, one, all, collection)
			d.Alt = &alt
		}
	}
	return l
}
