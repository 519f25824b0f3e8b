package xdstp

import (
	"slices"
	"strings"
)

// IsGlob says whether a text is a structured name that ends in a segment "*", which means a
// collection: "xdstp://a/type/path/*?key=value" (xRFC TP1). The old-style wildcard "*" is no
// glob. It allocates only if the ID holds an escape.
func IsGlob(name string) bool {
	if !strings.HasPrefix(name, namePrefix) {
		return false
	}
	p, err := split(name, len(namePrefix))
	return err == nil && isGlobID(unescape(p.id))
}

// IsGlob says whether the name stands for a collection: its ID is "*" or ends in "/*".
func (n Name) IsGlob() bool { return isGlobID(n.ID) }

func isGlobID(id string) bool {
	_, last := cutLast(id)
	return last == "*"
}

// Matches says whether a glob matches a name: the same authority and type, exactly the same
// parameters, and an ID with one more segment in place of the glob's "*". It matches no deeper
// ID, and no other glob. False if n is no glob.
func (n Name) Matches(member Name) bool {
	path, last := cutLast(n.ID)
	memberPath, segment := cutLast(member.ID)
	// GLOB-1, CTX-4: one more segment, with the same context.
	return last == "*" && segment != "" && segment != "*" && path == memberPath &&
		n.Authority == member.Authority && n.Type == member.Type &&
		slices.Equal(inOrder(n.Params), inOrder(member.Params))
}

// Glob returns the only glob that matches the name; ok is false for a name that none can match,
// which is one whose ID is empty or ends in '/', and for a glob.
func (n Name) Glob() (glob Name, ok bool) {
	path, segment := cutLast(n.ID)
	if segment == "" || segment == "*" {
		return Name{}, false
	}
	n.ID = path + "*"
	return n, true
}

// cutLast cuts an ID before its last segment; the slash stays with the path.
func cutLast(id string) (path, segment string) {
	i := strings.LastIndexByte(id, '/') + 1
	return id[:i], id[i:]
}
