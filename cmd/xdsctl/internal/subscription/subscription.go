// Package subscription reads the SUBSCRIPTION arguments of xdsctl.
package subscription

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/wellknown"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Subscription is what a user asked for. Two that mean the same are equal. It is immutable.
type Subscription struct {
	TypeURL string // of resources, or members; "" for a structured name in which none can be found
	Name    string // canonical where it can be; "*" for both wildcards
	// Collection says that the name stands for many resources: a wildcard, a glob or a
	// list collection.
	Collection bool
	// Explicit is the wildcard that is spelled "*" on the wire.
	Explicit bool
}

// Given is a subscription as it was given.
type Given struct {
	Subscription
	Text string
}

// Asked is the name in its text.
func (g Given) Asked() string {
	if xdstp.IsXDSTP(g.Text) {
		return g.Text
	}
	if _, name, named := strings.Cut(g.Text, ":"); named {
		return name
	}
	return Wildcard
}

// Wildcard is the name of everything, also as a whole in its events.
const Wildcard = "*"

// collectionSuffix ends the type of a list collection (xRFC TP1).
const collectionSuffix = "Collection"

// Parse reads one subscription. A text whose name is malformed is one too: what is wrong
// with it is the client's to say. The error tells how subscriptions are written.
func Parse(text string) (Given, error) {
	s, err := parse(text)
	return Given{s, text}, err
}

func parse(text string) (Subscription, error) {
	if xdstp.IsXDSTP(text) {
		return of("", text), nil
	}
	typ, name, named := strings.Cut(text, ":")
	url, err := typeURL(typ)
	if err != nil {
		return Subscription{}, fmt.Errorf("subscription %.100q: %w", text, err)
	}
	if !named || name == Wildcard {
		return Subscription{TypeURL: url, Name: Wildcard, Collection: true, Explicit: named}, nil
	}
	return of(url, name), nil
}

// of makes the subscription to a name. A structured one tells its type, for which "" may
// stand. What is malformed stays as it is; the type may be good where parameters or directives
// are not.
func of(typeURL, name string) Subscription {
	s := Subscription{TypeURL: typeURL, Name: name}
	if !xdstp.IsXDSTP(name) && !xdstp.IsFile(name) {
		return s
	}
	l, err := xdstp.ParseLocator(name)
	if err == nil {
		s.Name, s.Collection = l.String(), isCollection(l)
	} else {
		path, _, _ := strings.Cut(name, "#")
		path, _, _ = strings.Cut(path, "?")
		l.Name, err = xdstp.Parse(path)
	}
	if own := resource.TypePrefix + l.Name.Type; err == nil && (typeURL == "" || typeURL == own) {
		s.TypeURL = strings.TrimSuffix(own, collectionSuffix)
	}
	return s
}

// isCollection says whether a locator is that of a glob or a list, which a file holds too. An
// inline entry of a list is one resource.
func isCollection(l xdstp.Locator) bool {
	_, entry := l.Entry()
	list := l.Scheme == xdstp.SchemeFile || strings.HasSuffix(l.Name.Type, collectionSuffix)
	return l.Name.IsGlob() || list && !entry
}

// HasDirectives says whether it is a structured name, or the URL of a file, with a fragment,
// which is for the client and never sent to a server (xRFC TP1).
func (s Subscription) HasDirectives() bool {
	return (xdstp.IsXDSTP(s.Name) || xdstp.IsFile(s.Name)) && strings.Contains(s.Name, "#")
}

func typeURL(typ string) (string, error) {
	if kind, ok := wellknown.ByShort(typ); ok {
		return kind.TypeURL(), nil
	}
	prefix, message, ok := cutLast(typ)
	switch {
	case ok && prefix != "" && message != "" && !strings.ContainsAny(typ, " \t"):
		return typ, nil
	case !ok && strings.Contains(typ, "."):
		return "", fmt.Errorf("a type URL begins with %q", resource.TypePrefix)
	case typ == "":
		return "", errors.New("it has no type")
	}
	return "", fmt.Errorf("%.100q is neither a short type name (%s) nor a type URL (%s…)", typ, shortNames(), resource.TypePrefix)
}

func cutLast(url string) (prefix, message string, ok bool) {
	i := strings.LastIndexByte(url, '/')
	if i < 0 {
		return "", url, false
	}
	return url[:i], url[i+1:], true
}

func shortNames() string {
	var names []string
	for _, e := range wellknown.All() {
		names = append(names, e.Short)
	}
	return strings.Join(names, " ")
}

// Short is the usual abbreviation of a type URL, or else the name of its message without
// the package: what stands in a table.
func Short(typeURL string) string {
	if e, ok := wellknown.ByTypeURL(typeURL); ok {
		return e.Short
	}
	return typeURL[strings.LastIndexAny(typeURL, "./")+1:]
}

// TypeText is what stands for a type in the text of a subscription.
func TypeText(typeURL string) string {
	if e, ok := wellknown.ByTypeURL(typeURL); ok {
		return e.Short
	}
	return typeURL
}
