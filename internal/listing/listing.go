package listing

import (
	"cmp"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Kind is the type of list collections of another type. All of them are alike on the wire,
// whatever their message: field 1 holds the entries. Two of one type and [Layouts] are equal.
type Kind struct {
	of   resource.AnyType
	seen *Layouts
}

// KindOf is the type of list collections of a type; seen finds what was read before.
func KindOf(k resource.AnyType, seen *Layouts) Kind { return Kind{k, seen} }

func (k Kind) TypeURL() string             { return xdstp.ListCollectionURL(k.of.TypeURL()) }
func (k Kind) FullState() bool             { return false }
func (k Kind) NameField() protowire.Number { return 0 }
func (k Kind) Methods() (sotw, delta string) {
	return "", ""
}

// Decode makes a directory. What is wrong with one entry is the entry's.
func (k Kind) Decode(src resource.Source, b []byte) (any, error) {
	d, _, err := k.DecodeNext(src, b, nil)
	return d, err
}

// DecodeNext is Decode with less work: what is inline is decoded if it is not as in the bytes before, which may be nil.
// Flaws are why entries cannot be used: the directory is accepted, and its response NACKed.
func (k Kind) DecodeNext(src resource.Source, b, before []byte) (value any, flaws []error, err error) {
	if l := k.seen.find(src, b); l != nil {
		return Directory{Layout: l, of: k.of}, l.flaws, nil
	}
	d := Directory{Layout: &Layout{src: src}, of: k.of}
	err = wire.Fields(b, func(num protowire.Number, f wire.Field) error {
		value, wrong := f.Bytes()
		switch {
		// COLL-2: field 1 has the entries, whatever the collection's type.
		case num != 1:
			return nil
		case wrong != nil:
			return errEntries
		}
		e, err := k.entry(value)
		if err != nil {
			return fmt.Errorf("entry %d: %w", len(d.Entries), err)
		}
		d.Entries = append(d.Entries, e)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("not a list collection: %w", err)
	}
	d.decode(k.seen.find(src, before))
	d.index()
	k.seen.put(b, d.Layout)
	return d, d.flaws, nil
}

// Why a directory or an entry of it is refused.
var (
	errEntries    = errors.New("it holds no entries")
	errNoEntry    = errors.New("it holds neither a locator nor an inline entry")
	errNoResource = errors.New("it holds no resource")
	errEntryName  = errors.New("its name has a character other than letters, digits and _-.~:/")
	// ErrTwice is of a name, or a locator, that is listed again.
	ErrTwice = errors.New("the collection lists it more than once")
)

// Directory is the value of a list collection.
type Directory struct {
	*Layout
	of     resource.AnyType
	values []any // of entries; nil of those that were not decoded for it

	before  *Directory // the last one without flaws, for who did not hear of it; nil for none
	version string     // of that
}

// After is the directory for who did not hear of the last one without flaws.
func (d Directory) After(before Directory, version string) Directory {
	d.before, d.version = &before, version
	return d
}

// Before is what the last directory without flaws has under the name of an inline entry. Raw is nil if it has none.
func (d Directory) Before(name string) (value any, raw []byte, version string) {
	if d.before == nil {
		return nil, nil, ""
	}
	i, err := d.before.Named(name)
	if err != nil || i < 0 {
		return nil, nil, ""
	}
	if value, err = d.before.Value(i); err != nil {
		return nil, nil, ""
	}
	e := &d.before.Entries[i]
	return value, e.Raw, cmp.Or(e.Version, d.version)
}

// NameOf is the name of an inline entry; "" if it has none.
func (d Directory) NameOf(i int) string { return d.Entries[i].name }

// decode decodes what is inline and good, but for what was so in the layout before.
func (d *Directory) decode(before *Layout) {
	d.values = make([]any, len(d.Entries))
	for i := range d.Entries {
		e := &d.Entries[i]
		if !e.inline || e.Err != nil {
			continue
		}
		if before != nil {
			if was := before.like(i, e); was != nil {
				e.Err = was.Err
				continue
			}
		}
		d.values[i], e.Err = d.decodeInline(e)
	}
}

// Value is that of an inline entry, decoded now if it was not before.
func (d Directory) Value(i int) (any, error) {
	e := &d.Entries[i]
	switch {
	case e.Err != nil:
		return nil, e.Err
	case d.values != nil && d.values[i] != nil:
		return d.values[i], nil
	}
	return d.decodeInline(e)
}

// Named finds the inline entry of a name, less than 0 for none. No entry is found by the
// empty name.
func (d Directory) Named(name string) (i int, err error) {
	i, ok := d.byName[name]
	switch {
	case !ok:
		return -1, nil
	case i < 0:
		return -1, ErrTwice
	}
	return i, nil
}

// entry reads a CollectionEntry; the last of its alternatives counts.
func (k Kind) entry(b []byte) (e Entry, err error) {
	e.Err = errNoEntry
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

// locatorEntry reads a locator.
func (k Kind) locatorEntry(b []byte) Entry {
	// COLL-2: as a message in both its forms, or as the bare text that entries of xRFC TP1 hold.
	l, err := xdstp.DecodeLocator(b)
	if err != nil {
		return Entry{Err: fmt.Errorf("its locator: %w", err)}
	}
	e := Entry{Locator: &l}
	if err := misnamed(k.of, l); err != nil {
		e.Err = fmt.Errorf("the member cannot be followed: %w", err)
	}
	return e
}

// inlineEntry reads an InlineEntry. The error is one of the whole directory.
func (k Kind) inlineEntry(b []byte) (Entry, error) {
	e := Entry{inline: true, Err: errNoResource}
	err := wire.Fields(b, func(num protowire.Number, f wire.Field) error {
		value, wrong := f.Bytes()
		switch {
		case wrong != nil:
		case num == 1:
			e.name = string(value)
		case num == 2:
			e.Version = string(value)
		case num == 3:
			return k.resource(&e, value)
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	// COLL-4: the name may be empty.
	if !xdstp.IsEntryName(e.name) {
		e.Err = errEntryName
	}
	if e.Err != nil {
		e.Err = e.fault(e.Err)
	}
	return e, nil
}

// fault is what is wrong with an inline entry.
func (e *Entry) fault(err error) error { return fmt.Errorf("the inline entry %q: %w", e.name, err) }

// resource reads the Any of an inline entry.
func (k Kind) resource(e *Entry, b []byte) error {
	var url string
	e.Raw = []byte{}
	err := wire.Fields(b, func(num protowire.Number, f wire.Field) error {
		value, wrong := f.Bytes()
		switch {
		case wrong != nil:
		case num == 1:
			url = string(value)
		case num == 2:
			e.Raw = value
		}
		return nil
	})
	e.Redirects, e.Err = url == wire.LocatorURL, nil
	if want := k.of.TypeURL(); url != want && !e.Redirects {
		e.Err = fmt.Errorf("type URL %q is not that of the collection's members, %q", url, want)
	}
	return err
}

// decodeInline decodes what an inline entry holds. A panic of the decoder is the entry's.
func (d Directory) decodeInline(e *Entry) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the decoder panicked: %s", redact.Panic(p))
		}
		if err != nil {
			value, err = nil, e.fault(err)
		}
	}()
	if e.Redirects {
		return NewRedirect(d.of, e.Raw)
	}
	return d.of.Decode(d.src, e.Raw)
}

// Redirect is the value of a payload that is no resource but says where the
// resource is (xRFC TP1, "Redirects").
type Redirect struct{ To xdstp.Locator }

// NewRedirect reads the payload of a redirect of a type. An error says why the locator
// cannot be one of a resource of the type; its alternatives are not looked at.
func NewRedirect(k resource.AnyType, raw []byte) (*Redirect, error) {
	l, err := xdstp.DecodeLocator(raw)
	if err != nil {
		return nil, fmt.Errorf("the redirect does not parse: %w", err)
	}
	if err := misnamed(k, l); err != nil {
		return nil, fmt.Errorf("the redirect cannot be followed: %w", err)
	}
	return &Redirect{l}, nil
}

// Is says whether a payload is of the same redirect.
func (r *Redirect) Is(raw []byte) bool {
	l, err := xdstp.DecodeLocator(raw)
	return err == nil && l.Equal(r.To)
}

// misnamed says why a locator cannot be one of a resource of a type, whatever the bootstrap
// has; nil if it can.
func misnamed(kind resource.AnyType, l xdstp.Locator) error {
	if err := CheckScheme(l); err != nil {
		return err
	}
	url := kind.TypeURL()
	if _, ok := l.Entry(); ok {
		url = xdstp.ListCollectionURL(url)
	}
	return authority.CheckReceived(url, l.Name)
}

// ErrScheme says that a locator is not of the scheme xdstp.
var ErrScheme = errors.New("only locators of the scheme xdstp are followed")

// CheckScheme says whether the scheme of a locator is one that is followed.
func CheckScheme(l xdstp.Locator) error {
	// XDSTP-6: http and file are read, and not followed.
	if l.Scheme != xdstp.SchemeXDSTP {
		return fmt.Errorf("locator %q: %w", l, ErrScheme)
	}
	return nil
}

// WithoutAlt is a locator of the same resource that has no alternative.
func WithoutAlt(l xdstp.Locator) xdstp.Locator {
	plain := Plain(l)
	if name, ok := l.Entry(); ok {
		plain = entryAt(plain, name)
	}
	return plain
}

// Plain is a locator without its directives.
func Plain(l xdstp.Locator) xdstp.Locator { return xdstp.Locator{Scheme: l.Scheme, Name: l.Name} }
