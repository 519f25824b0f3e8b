package xdstp

import "strings"

const collectionSuffix = "Collection"

// TypeSegment returns the type segment that names of a type have: the type URL without its
// prefix, up to and with the last '/'.
func TypeSegment(typeURL string) string {
	return typeURL[strings.LastIndexByte(typeURL, '/')+1:]
}

// ListCollectionURL returns the type URL of the list collections of a type: by convention
// the message <T>Collection of the same package (xRFC TP1, "List").
func ListCollectionURL(typeURL string) string { return typeURL + collectionSuffix }

// IsListCollection says whether the name is that of a list collection of a type: its type
// segment is <T>Collection and it is no glob. Such a name is watched as a single resource
// of the type [ListCollectionURL] (xRFC TP1, "List"). It does not allocate.
func (n Name) IsListCollection(typeURL string) bool {
	element, ok := strings.CutSuffix(n.Type, collectionSuffix)
	return ok && element == TypeSegment(typeURL) && !n.IsGlob()
}

// IsEntryName says whether an inline entry of a list collection may have a name: letters,
// digits and any of "_-.~:/", or none at all. The prose of xRFC TP1 and the pattern of
// xds.core.v3.CollectionEntry.InlineEntry disagree; this allows what either allows.
func IsEntryName(name string) bool {
	for _, c := range []byte(name) {
		if !isEntryByte(c) {
			return false
		}
	}
	return true
}

func isEntryByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' ||
		strings.IndexByte("_-.~:/", c) >= 0
}
