package machine

import (
	"fmt"
	"strings"
)

// verdict is what becomes of a response: what is wrong with it.
type verdict struct {
	lines          []string // what is wrong, for the NACK: as many as that has room for
	length         int      // of them, in bytes
	valid, invalid int      // entries, as [Exchange] counts them
}

// full says that the NACK has no room for more: there may be a million that is wrong.
func (v *verdict) full() bool { return v.length > maxMessage }

// line adds what is wrong with an entry of the response.
func (v *verdict) line(i int, name string, err error) {
	if v.full() {
		return
	}
	line := fmt.Sprintf("%s: %v", name, err)
	switch {
	case i >= 0 && name == "":
		line = fmt.Sprintf("resource index %d: %v", i, err)
	case i >= 0:
		line = fmt.Sprintf("resource index %d: %s", i, line)
	}
	v.lines = append(v.lines, line)
	v.length += len(line)
}

// count counts an entry that has nothing wrong with it, is refused, or is used but for its flaws.
func (v *verdict) count(i int, sub *subscription, refused error, flaws []error) {
	switch {
	case refused != nil:
		v.invalid++
		v.line(i, sub.name, refused)
	case len(flaws) == 0:
		v.valid++
	default:
		v.invalid++
		for _, err := range flaws {
			v.line(i, sub.name, err)
		}
	}
}

// maxMessage is how long the text of a NACK may be; headers of 8 KiB are a common limit,
// and some servers put it there.
const (
	maxMessage = 4096
	truncated  = "...(truncated)"
)

// message is the text of a NACK: everything that is wrong, cut where it gets too long.
func (v *verdict) message() string {
	text := strings.ToValidUTF8(strings.Join(v.lines, "; "), "\uFFFD")
	if len(text) <= maxMessage {
		return text
	}
	// ACK-5: the text is bounded.
	return strings.ToValidUTF8(text[:maxMessage-len(truncated)], "") + truncated
}
