package machine

import (
	"strings"
	"time"
)

// Bounds of what is kept of the newest response of each type on a stream, for who misses
// something in it (U-1).
const (
	maxInsteadNames = 3
	maxInsteadName  = 256 // bytes of each
	maxInsteadText  = 512 // bytes of a refusal
)

// keepInstead keeps what a response holds. The entries are those of its resources, nil where nobody
// subscribed to one.
func (resp *response) keepInstead(now time.Time, found []*subscription) {
	in := &Instead{At: now, Count: len(resp.Resources)}
	for _, asked := range []bool{false, true} {
		for i, sub := range found {
			if len(in.Names) == maxInsteadNames {
				break
			}
			if (sub != nil) == asked {
				in.name(resp, i)
			}
		}
	}
	resp.link.instead = in
}

func (in *Instead) name(resp *response, i int) {
	if name, _ := resp.link.nameOf(&resp.Resources[i]); len(name) > 0 {
		in.Names = append(in.Names, cut(string(name), maxInsteadName))
	}
}

// noteRefusal keeps why a response is NACKed.
func (resp *response) noteRefusal() {
	if in := resp.link.instead; in != nil && len(resp.lines) > 0 {
		own := *in
		own.Refusal = cut(resp.message(), maxInsteadText)
		resp.link.instead = &own
	}
}

// cut makes a text that is valid and of at most so many bytes.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most-len(truncated)] + truncated
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
