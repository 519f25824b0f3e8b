package file

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// request is what counts of a DiscoveryRequest.
type request struct {
	typeURL string
	names   [][]byte // sorted; parts of the message
	nonce   string
	nack    bool
	message string // of the NACK
}

// scanRequest reads an encoded DiscoveryRequest.
func scanRequest(msg []byte) (r request, err error) {
	const names, typeURL, nonce, detail, locators = 3, 4, 5, 6, 7
	for b := msg; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return r, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return r, protowire.ParseError(size)
		}
		value, _ := protowire.ConsumeBytes(b[n : n+size]) // nil for what is no bytes
		switch num {
		case names:
			r.names = append(r.names, value)
		case locators:
			name, _, err := wire.StringField(value, 1)
			if err != nil {
				return r, err
			}
			r.names = append(r.names, name)
		case typeURL:
			r.typeURL = string(value)
		case nonce:
			r.nonce = string(value)
		case detail:
			const message = 2
			text, _, err := wire.StringField(value, message)
			if err != nil {
				return r, err
			}
			r.nack, r.message = true, string(text)
		}
		b = b[n+size:]
	}
	if r.typeURL == "" {
		return r, fmt.Errorf("the request has no type URL")
	}
	if !slices.IsSortedFunc(r.names, bytes.Compare) {
		slices.SortFunc(r.names, bytes.Compare)
	}
	return r, nil
}

// interest is what is wanted of a type, and what of that was told.
type interest struct {
	typeURL string
	names   [][]byte // sorted
	wild    bool
	named   bool // names were sent before: no names are none by now
	asked   bool // for something that was not answered yet

	// The numbers of the content and of the fault that were told last; 0 for none.
	contents, faults int
	states           map[string][sha256.Size]byte // of the files of each Secret, as they were told
}

var star = []byte("*")

// update takes the names of a request (xDS protocol, "How the client specifies what
// resources to return").
func (i *interest) update(names [][]byte) {
	i.named = i.named || len(names) > 0
	_, wild := slices.BinarySearchFunc(names, star, bytes.Compare)
	wild = wild || !i.named
	i.asked = i.asked || wild && !i.wild || !subset(names, i.names)
	i.names, i.wild = names, wild
}

// wanted says that there is anybody to answer to.
func (i *interest) wanted() bool { return i.wild || len(i.names) > 0 }

// subset says whether each of a sorted list is in another.
func subset(list, of [][]byte) bool {
	for _, name := range list {
		for len(of) > 0 && bytes.Compare(of[0], name) < 0 {
			of = of[1:]
		}
		if len(of) == 0 || !bytes.Equal(of[0], name) {
			return false
		}
	}
	return true
}
