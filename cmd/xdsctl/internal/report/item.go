package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Item is a resource with its state.
type Item struct {
	State
	Size       int       `json:"size"`     // of the payload, in bytes
	Resource   *Resource `json:"resource"` // nil if there is none
	Collection bool      `json:"-"`        // it is a collection as a whole
	Scope      string    `json:"-"`        // of the process that holds it
}

// IsKnown says whether the server told what it has of the resource, be it that it has none. A timeout tells
// so only of a name that a good response of the type leaves out.
func (i *Item) IsKnown() bool {
	if i.Error != nil || i.Status == StatusRequested {
		return false
	}
	return !i.TimedOut || !i.Collection && i.Instead != nil && i.Instead.Error == nil
}

// Note changes the item as a record about the resource says.
func (i *Item) Note(r Record) {
	i.State.Note(r)
	if u, ok := r.(Update); ok {
		i.Size, i.Resource = len(u.Resource.Raw), &u.Resource
	} else if i.Updated == nil {
		i.Size, i.Resource = 0, nil
	}
}

// AboutOf says which resource a record is about.
func AboutOf(r Record) (About, bool) {
	switch r := r.(type) {
	case Update:
		return r.About, true
	case Absent:
		return r.About, true
	case Fault:
		return r.About, true
	case Synced:
		return r.About, true
	}
	return About{}, false
}

// WriteItems writes a list of resources: as "table", "json", "yaml" or "name".
func WriteItems(out io.Writer, format string, items []Item, o JSONOptions) error {
	switch format {
	case "json":
		for i := range items {
			if r := items[i].Resource; r != nil {
				r.options = resourcejson.Options{ShowSecrets: o.ShowSecrets}
			}
		}
		return WriteJSON(out, items)
	case "yaml":
		return writeResponses(out, items, resourcejson.Options{ShowSecrets: o.ShowSecrets})
	case "name":
		return writeNames(out, items)
	}
	rows := [][]string{{"NAME", "TYPE", "VERSION", "SIZE", "SERVER", "STATUS"}}
	for _, i := range items {
		held := ""
		if i.Resource != nil {
			held = size(i.Size)
		}
		rows = append(rows, []string{i.Name, subscription.Short(i.Type), i.Version, held, i.Server, i.Status})
	}
	return WriteTable(out, rows)
}

// WriteJSON writes a value indented, with one call of Write.
func WriteJSON(out io.Writer, v any) error { return writeJSON(out, v, "  ") }

// WriteLine writes a value on a line, with one call of Write.
func WriteLine(out io.Writer, v any) error { return writeJSON(out, v, "") }

func writeJSON(out io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(escape(b.Bytes()))
	return err
}

// WriteTable writes rows in columns, of which the first is the head, with one call of Write.
func WriteTable(out io.Writer, rows [][]string) error {
	var b bytes.Buffer
	table(&b, "", rows)
	_, err := out.Write(b.Bytes())
	return err
}

// writeNames writes the resources that there are as subscriptions.
func writeNames(out io.Writer, items []Item) error {
	var b bytes.Buffer
	for _, i := range items {
		if i.Resource == nil {
			continue
		}
		name := i.Name
		if !xdstp.IsXDSTP(name) {
			name = subscription.TypeText(i.Type) + ":" + name
		}
		fmt.Fprintln(&b, Clean(name))
	}
	_, err := out.Write(b.Bytes())
	return err
}

// response is a DiscoveryResponse as files have it.
type response struct {
	Version   string            `json:"version_info,omitempty"`
	Type      string            `json:"type_url"`
	Resources []json.RawMessage `json:"resources"`
}

// writeResponses writes the resources that there are as a DiscoveryResponse for each type, of a process for each
// type of a scope, each a document of YAML.
func writeResponses(out io.Writer, items []Item, o resourcejson.Options) error {
	var b bytes.Buffer
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].Type == items[0].Type && items[n].Scope == items[0].Scope {
			n++
		}
		if b.Len() > 0 {
			b.WriteString("---\n")
		}
		if scope := items[0].Scope; scope != "" {
			b.WriteString(resources.ScopeComment(scope))
		}
		text, err := json.Marshal(responseOf(items[:n], o))
		if err != nil {
			return err
		}
		text = escape(text)
		doc, err := yaml.JSONToYAML(text)
		if err != nil || bytes.ContainsFunc(doc, hiddenInJSON) {
			doc = append(text, '\n') // JSON is YAML, with escapes for all that does not show
		}
		b.Write(doc)
		items = items[n:]
	}
	_, err := out.Write(b.Bytes())
	return err
}

// responseOf is the response with the resources that there are of a type. One version that all of them have
// is that of the response.
func responseOf(items []Item, o resourcejson.Options) response {
	r := response{Type: items[0].Type, Resources: []json.RawMessage{}}
	for _, i := range items {
		switch {
		case i.Resource == nil:
			continue
		case len(r.Resources) == 0:
			r.Version = i.Version
		case i.Version != r.Version:
			r.Version = ""
		}
		r.Resources = append(r.Resources, i.entry(o))
	}
	return r
}

// resourceType is the type URL of a resource with a name beside it.
const resourceType = "type.googleapis.com/envoy.service.discovery.v3.Resource"

// entry is a resource as an Any: wrapped in a Resource where its own name is another, or none.
func (i Item) entry(o resourcejson.Options) json.RawMessage {
	var text json.RawMessage
	if i.Resource.Message == nil {
		text = resourcejson.Unknown(i.Type, i.Resource.Raw)
	} else {
		text = o.Any(i.Type, i.Resource.Message)
	}
	var own struct {
		Name        string `json:"name"`
		ClusterName string `json:"clusterName"` // of a ClusterLoadAssignment
	}
	_ = json.Unmarshal(text, &own) // where there is no name it has to be wrapped
	if own.Name == i.Name || own.ClusterName == i.Name {
		return text
	}
	wrapped, _ := json.Marshal(struct { // of strings and JSON
		Type     string          `json:"@type"`
		Name     string          `json:"name"`
		Version  string          `json:"version,omitempty"`
		Resource json.RawMessage `json:"resource"`
	}{resourceType, i.Name, i.Version, text})
	return wrapped
}
