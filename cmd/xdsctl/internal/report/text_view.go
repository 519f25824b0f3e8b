package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/lds"
)

// view writes the events of a resolved view.
func (t *Text) view(r Record) {
	switch r := r.(type) {
	case Config:
		t.config(r.Head, &r.ConfigValue)
	case Waiting:
		t.waiting(r.Head, r.For)
	case RootError:
		t.row(r.Head, "", r.Listener, rootFault(r.Error))
	case Removed:
		t.row(r.Head, lds.Type.TypeURL(), r.Listener, "the listener went")
	case ViewDump:
		t.viewDump(r)
	}
}

// rootFault names the resource too, which may be the root or one that it leads to.
func rootFault(e *Error) string { return e.Kind + ": " + e.Message }

// config writes a line, and tables below it.
func (t *Text) config(h Head, c *ConfigValue) {
	typ, name, v := "", "", ""
	if c.Listener != nil {
		typ, name, v = lds.Type.TypeURL(), c.Listener.Name, c.Listener.Version
	}
	state := "complete"
	if !c.Complete {
		state = "something is waited for"
	}
	t.row(h, typ, name, details(version(v), state))
	t.hosts(c)
	t.clusters(c)
}

func (t *Text) hosts(c *ConfigValue) {
	rows := [][]string{{"VIRTUAL HOST", "DOMAINS", "ROUTES", "VERSION", "REMARKS"}}
	of := map[string]RouteConfig{}
	for _, rc := range c.RouteConfigs {
		of[rc.Name] = rc
		if rc.Error != nil {
			rows = append(rows, []string{"", "", rc.Name, rc.Version, fault(rc.Error, "")})
		}
	}
	for _, vh := range c.VirtualHosts {
		rc := of[vh.RouteConfig]
		rows = append(rows, []string{vh.Name, strings.Join(vh.Domains, " "), vh.RouteConfig, rc.Version, flag(rc.Deleted, "deleted") + flag(rc.Inline, "inline")})
	}
	if len(rows) > 1 {
		table(&t.buf, "  ", rows)
	}
}

func (t *Text) clusters(c *ConfigValue) {
	rows := [][]string{{"CLUSTER", "KIND", "STATUS", "VERSION", "ENDPOINTS", "NAMED BY", "REMARKS"}}
	for _, name := range slices.Sorted(maps.Keys(c.Clusters)) {
		cl := c.Clusters[name]
		there := endpoints(cl.Endpoints)
		if len(cl.Leaves) > 0 {
			there = strings.Join(cl.Leaves, " ")
		}
		rows = append(rows, []string{
			name, cl.Kind, cl.Status, cl.Version, there, strings.Join(cl.ReferencedBy, " "),
			details(fault(cl.Error, ""), flag(cl.Deleted, "deleted"), flag(cl.EndpointsDeleted, "endpoints deleted"), strings.ReplaceAll(cl.Note, "\n", "; ")),
		})
	}
	if len(rows) > 1 {
		table(&t.buf, "  ", rows)
	}
}

// endpoints says how many there are, and how many of them a picker may use.
func endpoints(ls []Locality) string {
	all, good := 0, 0
	for _, l := range ls {
		for _, e := range l.Endpoints {
			if all++; e.Health == "UNKNOWN" || e.Health == "HEALTHY" {
				good++
			}
		}
	}
	if all == good {
		return fmt.Sprint(all)
	}
	return fmt.Sprintf("%d of %d", good, all)
}

func flag(on bool, word string) string {
	if on {
		return word
	}
	return ""
}

// waiting writes a line, and a table below it.
func (t *Text) waiting(h Head, ws []Wait) {
	if len(ws) == 0 {
		t.row(h, "", "", "for nothing any more")
		return
	}
	t.row(h, "", "", count(len(ws), "resource", "resources"))
	t.waits(h, ws)
}

func (t *Text) waits(h Head, ws []Wait) {
	rows := [][]string{{"TYPE", "NAME", "SINCE", "HOLDS BACK", "REASON"}}
	for _, w := range ws {
		rows = append(rows, []string{
			subscription.Short(w.Type), w.Name, age(time.Time(h.Time), &w.Since), map[bool]string{true: "yes", false: "no"}[w.Blocking], w.Reason,
		})
	}
	table(&t.buf, "  ", rows)
}

func (t *Text) viewDump(d ViewDump) {
	t.row(d.Head, "", "", count(len(d.Watched), "resource is watched", "resources are watched"))
	rows := [][]string{{"TYPE", "NAME", "REFERENCES"}}
	for _, w := range d.Watched {
		rows = append(rows, []string{subscription.Short(w.Type), w.Name, fmt.Sprint(w.References)})
	}
	table(&t.buf, "  ", rows)
	if len(d.Waiting) > 0 {
		t.waits(d.Head, d.Waiting)
	}
	if d.Error != nil {
		t.row(d.Head, "", "", rootFault(d.Error))
	}
	if d.Config != nil {
		t.config(d.Head, d.Config)
	}
}
