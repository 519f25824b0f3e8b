package client

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// directoryKind is the type of list collections of another type. All of them are alike on
// the wire, whatever their message: field 1 holds the entries. Two of one type and client
// are equal.
type directoryKind struct {
	of   resource.AnyType
	seen *layouts
}

// directoryOf is the type of list collections of a type.
func (c *Client) directoryOf(k resource.AnyType) directoryKind { return directoryKind{k, &c.layouts} }

func (k directoryKind) TypeURL() string             { return xdstp.ListCollectionURL(k.of.TypeURL()) }
func (k directoryKind) FullState() bool             { return false }
func (k directoryKind) NameField() protowire.Number { return 0 }
func (k directoryKind) Methods() (sotw, delta string) {
	return "", ""
}

// Decode makes a directory. What is wrong with one entry is the entry's.
func (k directoryKind) Decode(src resource.Source, b []byte) (any, error) {
	d, _, err := k.DecodeNext(src, b, nil)
	return d, err
}

// DecodeNext implements engine.Incremental: what is inline is decoded if it is not as in the
// bytes before.
func (k directoryKind) DecodeNext(src resource.Source, b, before []byte) (value any, flaws []error, err error) {
	if l := k.seen.find(src, b); l != nil {
		return directory{layout: l, of: k.of}, l.flaws, nil
	}
	d := directory{layout: &layout{src: src}, of: k.of}
	err = wire.Fields(b, func(num protowire.Number, f wire.Field) error {
		value, wrong := f.Bytes()
		switch {
		case num != 1:
			return nil
		case wrong != nil:
			return errEntries
		}
		e, err := k.entry(value)
		if err != nil {
			return fmt.Errorf("entry %d: %w", len(d.entries), err)
		}
		d.entries = append(d.entries, e)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("not a list collection: %w", err)
	}
	d.decode(k.seen.find(src, before))
	d.index()
	k.seen.put(b, d.layout)
	return d, d.flaws, nil
}

// Why a directory or an entry of it is refused.
var (
	errEntries     = errors.New("it holds no entries")
	errNoEntry     = errors.New("it holds neither a locator nor an inline entry")
	errNoResource  = errors.New("it holds no resource")
	errEntryName   = errors.New("its name has a character other than letters, digits and _-.~:/")
	errListedTwice = errors.New("the collection lists it more than once")
)

// directory is the value of a list collection.
type directory struct {
	*layout
	of     resource.AnyType
	values []any // of entries; nil of those that were not decoded for it
}

// decode decodes what is inline and good, but for what was so in the layout before.
func (d *directory) decode(before *layout) {
	d.values = make([]any, len(d.entries))
	for i := range d.entries {
		e := &d.entries[i]
		if !e.inline || e.err != nil {
			continue
		}
		if before != nil {
			if was := before.like(i, e); was != nil {
				e.err = was.err
				continue
			}
		}
		d.values[i], e.err = d.decodeInline(e)
	}
}

// value is that of an inline entry, decoded now if it was not before.
func (d directory) value(e *dirEntry, i int) (any, error) {
	switch {
	case e.err != nil:
		return nil, e.err
	case d.values != nil && d.values[i] != nil:
		return d.values[i], nil
	}
	return d.decodeInline(e)
}

// named finds the inline entry of a name, less than 0 for none. No entry is found by the
// empty name.
func (d directory) named(name string) (i int, err error) {
	i, ok := d.byName[name]
	switch {
	case !ok:
		return -1, nil
	case i < 0:
		return -1, errListedTwice
	}
	return i, nil
}

// fill makes the event of a directory that of its inline entry: a value, an absence, or the
// error why the entry cannot be used.
func (d directory) fill(ev *Event[any], name string) error {
	i, err := d.named(name)
	ev.Value, ev.Raw, ev.Attributes = nil, nil, nil // those of the directory
	switch {
	case err != nil:
		return err
	case i < 0:
		ev.Kind, ev.Reason, ev.Version = EventDoesNotExist, ReasonNotFound, ""
		return nil
	}
	return d.fillAt(ev, i)
}

// fillAt makes an event that of an inline entry.
func (d directory) fillAt(ev *Event[any], i int) (err error) {
	e := &d.entries[i]
	if ev.Value, err = d.value(e, i); err != nil {
		return err
	}
	if ev.Raw = e.raw; e.version != "" {
		ev.Version = e.version
	}
	return nil
}

// entry reads a CollectionEntry; the last of its alternatives counts.
func (k directoryKind) entry(b []byte) (e dirEntry, err error) {
	e.err = errNoEntry
	err = wire.Fields(b, func(num protowire.Number, f wire.Field) error {
		value, wrong := f.Bytes()
		switch {
		case wrong != nil:
		case num == 1:
			e = k.locatorEntry(value)
		case num == 2:
			e, err = k.inlineEntry(value)
			return err
		}
		return nil
	})
	return e, err
}

// locatorEntry reads a locator: the message in both its forms, or the bare text that the
// entries of xRFC TP1 hold, which is no message: its first letter is not a tag of one.
func (k directoryKind) locatorEntry(b []byte) dirEntry {
	read := xdstp.DecodeLocator
	if xdstp.IsXDSTP(string(b)) {
		read = func(b []byte) (xdstp.Locator, error) { return xdstp.ParseLocator(string(b)) }
	}
	l, err := read(b)
	if err != nil {
		return dirEntry{err: fmt.Errorf("its locator: %w", err)}
	}
	e := dirEntry{locator: &l}
	if err := misnamed(k.of, l); err != nil {
		e.err = fmt.Errorf("the member cannot be followed: %w", err)
	}
	return e
}

// inlineEntry reads an InlineEntry. The error is one of the whole directory.
func (k directoryKind) inlineEntry(b []byte) (dirEntry, error) {
	e := dirEntry{inline: true, err: errNoResource}
	err := wire.Fields(b, func(num protowire.Number, f wire.Field) error {
		value, wrong := f.Bytes()
		switch {
		case wrong != nil:
		case num == 1:
			e.name = string(value)
		case num == 2:
			e.version = string(value)
		case num == 3:
			return k.resource(&e, value)
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	if !entryName(e.name) {
		e.err = errEntryName
	}
	if e.err != nil {
		e.err = e.fault(e.err)
	}
	return e, nil
}

// fault is what is wrong with an inline entry.
func (e *dirEntry) fault(err error) error { return fmt.Errorf("the inline entry %q: %w", e.name, err) }

// resource reads the Any of an inline entry.
func (k directoryKind) resource(e *dirEntry, b []byte) error {
	var url string
	e.raw = []byte{}
	err := wire.Fields(b, func(num protowire.Number, f wire.Field) error {
		value, wrong := f.Bytes()
		switch {
		case wrong != nil:
		case num == 1:
			url = string(value)
		case num == 2:
			e.raw = value
		}
		return nil
	})
	e.redirects, e.err = url == locatorURL, nil
	if want := k.of.TypeURL(); url != want && !e.redirects {
		e.err = fmt.Errorf("type URL %q is not that of the collection's members, %q", url, want)
	}
	return err
}

// locatorURL is the type URL of a redirect.
const locatorURL = resource.TypePrefix + "xds.core.v3.ResourceLocator"

// decodeInline decodes what an inline entry holds. A panic of the decoder is the entry's.
func (d directory) decodeInline(e *dirEntry) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the decoder panicked: %s", redact.Panic(p))
		}
		if err != nil {
			value, err = nil, e.fault(err)
		}
	}()
	if e.redirects {
		return engine.NewRedirect(d.of, e.raw)
	}
	return d.of.Decode(d.src, e.raw)
}

// entryName says whether an inline entry may have a name: what the text of xRFC TP1 or the
// validation rule of the message allows.
func entryName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("_-./~:", r)
	}) < 0
}
