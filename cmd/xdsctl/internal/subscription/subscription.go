// Package subscription reads the SUBSCRIPTION arguments of xdsctl.
package subscription

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/wellknown"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Subscription is what a user asked for. Two that mean the same are equal. It is immutable.
type Subscription struct {
	TypeURL string // "" for a structured name in which none can be found
	Name    string // canonical where it can be; "*" for both wildcards
	// Collection says that the name stands for many resources: a wildcard, a glob or a
	// list collection.
	Collection bool
	// Explicit is the wildcard that is spelled "*" on the wire.
	Explicit bool
}

// Wildcard is the name of everything, also as a whole in its events.
const Wildcard = "*"

// collectionSuffix ends the type of a list collection (xRFC TP1).
const collectionSuffix = "Collection"

// Parse reads one subscription. A text whose name is malformed is one too: what is wrong
// with it is the client's to say. The error tells how subscriptions are written.
func Parse(text string) (Subscription, error) {
	if xdstp.IsXDSTP(text) {
		return structured(text), nil
	}
	typ, name, named := strings.Cut(text, ":")
	url, err := typeURL(typ)
	if err != nil {
		return Subscription{}, fmt.Errorf("subscription %q: %w", text, err)
	}
	s := Subscription{TypeURL: url, Name: canonical(name)}
	switch {
	case !named:
		s.Name, s.Collection = Wildcard, true
	case name == Wildcard:
		s.Collection, s.Explicit = true, true
	case xdstp.IsXDSTP(name):
		s.Collection = isCollection(name)
	}
	return s, nil
}

// structured takes the type from the name itself.
func structured(text string) Subscription {
	s := Subscription{Name: canonical(text)}
	l, err := xdstp.ParseLocator(text)
	if err != nil {
		return s
	}
	s.TypeURL = resource.TypePrefix + strings.TrimSuffix(l.Name.Type, collectionSuffix)
	s.Collection = isCollection(text)
	return s
}

// isCollection says whether a structured name is that of a glob or a list. An inline entry
// of a list is one resource.
func isCollection(name string) bool {
	l, err := xdstp.ParseLocator(name)
	if err != nil {
		return false
	}
	entry := slices.ContainsFunc(l.Directives, func(d xdstp.Directive) bool { return d.Alt == nil })
	return l.Name.IsGlob() || strings.HasSuffix(l.Name.Type, collectionSuffix) && !entry
}

// canonical makes equal names have equal texts; a malformed one stays as it is.
func canonical(name string) string {
	if !xdstp.IsXDSTP(name) {
		return name
	}
	if l, err := xdstp.ParseLocator(name); err == nil {
		return l.String()
	}
	return name
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
	return "", fmt.Errorf("%q is neither a short type name (%s) nor a type URL (%s…)", typ, shortNames(), resource.TypePrefix)
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
