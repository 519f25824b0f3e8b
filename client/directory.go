package client

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// directoryKind is the type of list collections of another type. All of them are alike on
// the wire, whatever their message: field 1 holds the entries. Two of one type are equal.
type directoryKind struct{ of resource.Kind }

func (k directoryKind) TypeURL() string             { return xdstp.ListCollectionURL(k.of.TypeURL()) }
func (k directoryKind) FullState() bool             { return false }
func (k directoryKind) NameField() protowire.Number { return 0 }
func (k directoryKind) Methods() (sotw, delta string) {
	return "", ""
}

// Decode makes a *directory. What is wrong with one entry is the entry's.
func (k directoryKind) Decode(src resource.Source, b []byte) (any, error) {
	d := &directory{}
	err := fields(b, func(num protowire.Number, typ protowire.Type, value []byte) error {
		switch {
		case num != 1:
			return nil
		case typ != protowire.BytesType:
			return errEntries
		}
		e, err := k.entry(src, value)
		if err != nil {
			return fmt.Errorf("entry %d: %w", len(d.entries), err)
		}
		d.entries = append(d.entries, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("not a list collection: %w", err)
	}
	return d, nil
}

// Why a directory or an entry of it is refused.
var (
	errEntries     = errors.New("field 1 holds no entries")
	errNoEntry     = errors.New("it holds neither a locator nor an inline entry")
	errNoResource  = errors.New("it holds no resource")
	errEntryName   = errors.New("its name has a character other than letters, digits and _-.~:/")
	errListedTwice = errors.New("the collection lists it more than once")
)

// directory is the value of a list collection. It refers to the bytes that it was made of.
type directory struct {
	entries []dirEntry

	once   sync.Once
	byName map[string]int // index of an inline entry; less than 0 of a name that comes twice
}

// dirEntry is one xds.core.v3.CollectionEntry: a locator, or something inline.
type dirEntry struct {
	locator *xdstp.Locator // nil of an inline entry, and of a locator that does not parse
	err     error          // why the entry cannot be used

	// Of an inline entry.
	inline        bool
	name, version string // may be empty
	redirects     bool   // value is a *engine.Redirect
	value         any
	raw           []byte
}

// named finds the inline entry of a name. No entry is found by the empty name.
func (d *directory) named(name string) (found *dirEntry, twice bool) {
	d.once.Do(d.index)
	i, ok := d.byName[name]
	if !ok || i < 0 {
		return nil, ok
	}
	return &d.entries[i], false
}

// fill makes the event of a directory that of its inline entry: a value, an absence, or the
// error why the entry cannot be used.
func (d *directory) fill(ev *Event, name string) error {
	e, twice := d.named(name)
	ev.Value, ev.Raw, ev.Attributes = nil, nil, nil // those of the directory
	switch {
	case twice:
		return errListedTwice
	case e == nil:
		ev.Kind, ev.Reason, ev.Version = KindDoesNotExist, ReasonNotFound, ""
	case e.err != nil:
		return e.err
	default:
		e.fill(ev)
	}
	return nil
}

// fill makes an event that of a good inline entry.
func (e *dirEntry) fill(ev *Event) {
	if ev.Value, ev.Raw = e.value, e.raw; e.version != "" {
		ev.Version = e.version
	}
}

func (d *directory) index() {
	d.byName = map[string]int{}
	for i := range d.entries {
		e := &d.entries[i]
		if !e.inline || e.name == "" {
			continue
		}
		if _, twice := d.byName[e.name]; twice {
			i = -1
		}
		d.byName[e.name] = i
	}
}

// memberName is what the entry is called in the collection of a URL without directives:
// its locator, or the URL with the directive that finds it. What has no name, or that of
// the collection itself, is called by its index, in a way that is no locator.
func (e *dirEntry) memberName(collection xdstp.Locator, index int) string {
	switch {
	case e.locator != nil && withoutAlt(*e.locator).String() != collection.String():
		return e.locator.String()
	case e.name != "":
		return entryAt(collection, e.name).String()
	}
	return collection.String() + "#" + strconv.Itoa(index)
}

// entryAt is the locator of an inline entry.
func entryAt(collection xdstp.Locator, name string) xdstp.Locator {
	collection.Directives = []xdstp.Directive{{Entry: name}}
	return collection
}

// entry reads a CollectionEntry; the last of its alternatives counts.
func (k directoryKind) entry(src resource.Source, b []byte) (e dirEntry, err error) {
	e.err = errNoEntry
	err = fields(b, func(num protowire.Number, typ protowire.Type, value []byte) error {
		switch {
		case typ != protowire.BytesType:
		case num == 1:
			e = locatorEntry(value)
		case num == 2:
			e, err = k.inlineEntry(src, value)
			return err
		}
		return nil
	})
	return e, err
}

// locatorEntry reads a locator: the message in both its forms, or the bare text that the
// entries of xRFC TP1 hold, which is no message: its first letter is not a tag of one.
func locatorEntry(b []byte) dirEntry {
	read := xdstp.DecodeLocator
	if xdstp.IsXDSTP(string(b)) {
		read = func(b []byte) (xdstp.Locator, error) { return xdstp.ParseLocator(string(b)) }
	}
	l, err := read(b)
	if err != nil {
		return dirEntry{err: fmt.Errorf("its locator: %w", err)}
	}
	return dirEntry{locator: &l}
}

// inlineEntry reads an InlineEntry. The error is one of the whole directory.
func (k directoryKind) inlineEntry(src resource.Source, b []byte) (dirEntry, error) {
	e := dirEntry{inline: true, err: errNoResource}
	var url string
	found := false
	err := fields(b, func(num protowire.Number, typ protowire.Type, value []byte) error {
		switch {
		case typ != protowire.BytesType:
		case num == 1:
			e.name = string(value)
		case num == 2:
			e.version = string(value)
		case num == 3:
			url, e.raw, found = "", []byte{}, true
			return fields(value, func(num protowire.Number, typ protowire.Type, value []byte) error {
				switch {
				case typ != protowire.BytesType:
				case num == 1:
					url = string(value)
				case num == 2:
					e.raw = value
				}
				return nil
			})
		}
		return nil
	})
	switch {
	case err != nil:
		return e, err
	case !entryName(e.name):
		e.err = errEntryName
	case found:
		e.redirects = url == locatorURL
		e.value, e.err = k.decodeInline(src, url, e.raw)
	}
	if e.err != nil {
		e.err = fmt.Errorf("the inline entry %q: %w", e.name, e.err)
	}
	return e, nil
}

// locatorURL is the type URL of a redirect.
const locatorURL = resource.TypePrefix + "xds.core.v3.ResourceLocator"

// decodeInline decodes what an inline entry holds. A panic of the decoder is the entry's.
func (k directoryKind) decodeInline(src resource.Source, url string, raw []byte) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("the decoder panicked: %v", p)
		}
	}()
	switch url {
	case k.of.TypeURL():
		return k.of.Decode(src, raw)
	case locatorURL:
		return engine.NewRedirect(k.of, raw)
	}
	return nil, fmt.Errorf("type URL %q is not that of the collection's members, %q", url, k.of.TypeURL())
}

// entryName says whether an inline entry may have a name: what the text of xRFC TP1 or the
// validation rule of the message allows.
func entryName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("_-./~:", r)
	}) < 0
}

// fields visits the fields of a message; of those that are no bytes it gives no value.
func fields(b []byte, visit func(protowire.Number, protowire.Type, []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(num, typ, b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		var value []byte
		if typ == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(b)
		}
		b = b[size:]
		if err := visit(num, typ, value); err != nil {
			return err
		}
	}
	return nil
}
