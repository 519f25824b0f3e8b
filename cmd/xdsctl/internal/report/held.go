package report

import (
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// Held is a resource that a process says it has, or wants.
type Held struct {
	Item
}

// Compare orders by scope, type and name.
func (h Held) Compare(other Held) int {
	return cmp.Or(strings.Compare(h.Scope, other.Scope), strings.Compare(h.Type, other.Type), strings.Compare(h.Name, other.Name))
}

// status is the JSON of a resource without its content.
type status struct {
	Scope   string `json:"scope"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Version string `json:"version"`
	Updated *Time  `json:"updated"` // nil if nothing is held
	Error   *Error `json:"error"`
}

func (h Held) status() status {
	return status{h.Scope, h.Type, h.Name, h.Status, h.Version, h.Updated, h.Error}
}

// WriteStatus writes what there is, as "table" or "json".
func WriteStatus(out io.Writer, format string, all []Held) error {
	if format == "json" {
		list := []status{}
		for _, h := range all {
			list = append(list, h.status())
		}
		return WriteJSON(out, list)
	}
	rows := [][]string{{"NAME", "TYPE", "STATUS", "VERSION", "AGE", "ERROR"}}
	now, scoped := time.Now(), false
	for _, h := range all {
		scoped = scoped || h.Scope != ""
	}
	if scoped {
		rows[0] = append([]string{"SCOPE"}, rows[0]...)
	}
	for _, h := range all {
		row := []string{h.Name, subscription.Short(h.Type), h.Status, h.Version, age(now, h.Updated), ""}
		if h.Error != nil {
			row[5] = h.Error.Message
		}
		if scoped {
			row = append([]string{h.Scope}, row...)
		}
		rows = append(rows, row)
	}
	return WriteTable(out, rows)
}

// WriteHeld writes a list of what there is as JSON, with contents.
func WriteHeld(out io.Writer, all []Held, o JSONOptions) error {
	type held struct {
		status
		Resource *Resource `json:"resource"` // nil if there is none
	}
	list := []held{}
	for _, h := range all {
		if h.Resource != nil {
			h.Resource.options = resourcejson.Options{ShowSecrets: o.ShowSecrets}
		}
		list = append(list, held{h.status(), h.Resource})
	}
	return WriteJSON(out, list)
}
