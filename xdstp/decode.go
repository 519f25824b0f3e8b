package xdstp

import (
	"bytes"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// maxNesting bounds the messages inside each other: an alternative is two, and a few more
// let the fault of one alternative too many be told by its field.
const maxNesting = 4*maxAltDepth + 4

// DecodeLocator reads the bytes of a locator as a server sends it, in a redirect or as a
// member of a list collection: an xds.core.v3.ResourceLocator, the message with one string
// of xRFC TP1 (see [LocatorFromProto]), or the text itself, which TP1 puts where a
// CollectionEntry has a message. No text that begins with a scheme and "//" is a message,
// so the forms do not overlap. Of a repeated parameter key the last value holds.
//
// The error is an [*Error] with its Field set. The result does not share memory with b.
func DecodeLocator(b []byte) (Locator, error) {
	if isLocatorText(b) {
		return locatorFromText(string(b), locatorField, 0)
	}
	m := new(xdscorev3.ResourceLocator)
	if err := (proto.UnmarshalOptions{RecursionLimit: maxNesting}).Unmarshal(b, m); err != nil {
		return Locator{}, decodeFault(locatorField, err)
	}
	return LocatorFromProto(m)
}

func isLocatorText(b []byte) bool {
	for _, scheme := range []string{namePrefix, "http://", "file://"} {
		if bytes.HasPrefix(b, []byte(scheme)) {
			return true
		}
	}
	return false
}

func decodeFault(field string, err error) error {
	return &Error{Field: field, Part: PartMessage, Reason: "does not parse", Err: err}
}

// Entry is an entry of a list collection (xds.core.v3.CollectionEntry): a member that is
// found elsewhere if Locator is set, else a resource that needs no further request.
type Entry struct {
	// Locator says where the member is.
	Locator *Locator
	// Name is that of an inline resource, by which an entry directive may mean it; "" if
	// it has none. It need not be good: see [IsEntryName].
	Name string
	// Version of an inline resource.
	Version string
	// Resource is the inline resource; nil if it was left out.
	Resource *anypb.Any
}

// DecodeEntry reads the bytes of a CollectionEntry. Its locator may have each of the forms
// of [DecodeLocator]. The error is an [*Error] with its Field set. The result does not
// share memory with b.
func DecodeEntry(b []byte) (Entry, error) {
	const field = "CollectionEntry"
	num, value, err := entryField(b)
	if err != nil {
		return Entry{}, decodeFault(field, err)
	}
	switch num {
	case entryLocator:
		l, err := DecodeLocator(value)
		if err != nil {
			return Entry{}, &Error{Field: field + ".locator", Part: PartMessage, Reason: "is not usable", Err: err}
		}
		return Entry{Locator: &l}, nil
	case entryInline:
		m := new(xdscorev3.CollectionEntry_InlineEntry)
		if err := proto.Unmarshal(value, m); err != nil {
			return Entry{}, decodeFault(field+".inline_entry", err)
		}
		return Entry{Name: m.GetName(), Version: m.GetVersion(), Resource: m.GetResource()}, nil
	}
	return Entry{}, fieldFault(field, PartMessage, "has neither a locator nor an inline entry")
}

// The numbers of the fields of xds.core.v3.CollectionEntry.
const (
	entryLocator protowire.Number = 1
	entryInline  protowire.Number = 2
)

// entryField gives the last of the fields of an entry, of which it holds one; a message
// that stands there in pieces is put together, as any decoder does.
func entryField(b []byte) (set protowire.Number, value []byte, err error) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return 0, nil, protowire.ParseError(n)
		}
		if typ == protowire.BytesType && (num == entryLocator || num == entryInline) {
			_, _, tag := protowire.ConsumeTag(b)
			piece, _ := protowire.ConsumeBytes(b[tag:])
			if num != set {
				value = nil
			}
			set, value = num, append(value, piece...)
		}
		b = b[n:]
	}
	return set, value, nil
}
