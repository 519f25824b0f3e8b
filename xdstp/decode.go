package xdstp

import (
	"bytes"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	"google.golang.org/protobuf/proto"
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
