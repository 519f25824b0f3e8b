package view

import (
	"encoding/json"
	"fmt"
)

// H-3: what is printed of a snapshot or its parts, also as JSON, names them and tells no content,
// which may hold credentials.

// Format implements [fmt.Formatter]: it names the snapshot.
func (s Snapshot) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "snapshot %d of %q", s.Serial, s.Root.Name)
}

// Format implements [fmt.Formatter]: it names the listener.
func (l Listener) Format(f fmt.State, _ rune) { l.print(f, "listener", l.Name) }

// Format implements [fmt.Formatter]: it names the route configuration.
func (rc RouteConfig) Format(f fmt.State, _ rune) { rc.print(f, "routes", rc.Name) }

// Format implements [fmt.Formatter]: it names the cluster.
func (c Cluster) Format(f fmt.State, _ rune) { c.print(f, "cluster", c.Name) }

// Format implements [fmt.Formatter]: it tells how many localities there are.
func (e Endpoints) Format(f fmt.State, _ rune) {
	e.print(f, fmt.Sprintf("endpoints in %d localities of", len(e.Message.GetEndpoints())), e.Message.GetClusterName())
}

// Format implements [fmt.Formatter]: it names the resource.
func (r Resource) Format(f fmt.State, _ rune) { r.print(f, r.Type, r.Name) }

func (o Origin) print(f fmt.State, what, name string) {
	fmt.Fprintf(f, "%s %q", what, name)
	if o.Version != "" {
		fmt.Fprintf(f, " version %q", o.Version)
	}
	if o.Server != nil {
		fmt.Fprintf(f, " of server %q", o.Server.URI)
	}
}

// MarshalJSON writes what Format prints.
func (s Snapshot) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(s)) }

// MarshalJSON writes what Format prints.
func (l Listener) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(l)) }

// MarshalJSON writes what Format prints.
func (rc RouteConfig) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(rc)) }

// MarshalJSON writes what Format prints.
func (c Cluster) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(c)) }

// MarshalJSON writes what Format prints.
func (e Endpoints) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(e)) }

// MarshalJSON writes what Format prints.
func (r Resource) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(r)) }
