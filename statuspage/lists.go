package statuspage

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view"
)

// watchRow are the watches of one kind of one name.
type watchRow struct {
	Kind       client.WatchKind `json:"kind"`
	Type       string           `json:"type"`
	Name       string           `json:"name,omitempty"`
	Scope      string           `json:"scope,omitempty"`
	Watches    int              `json:"watches"`
	Names      int              `json:"names"`
	Unanswered int              `json:"unanswered"`
	Valueless  int              `json:"valueless"`
}

// State says in a word what the watches wait for.
func (r watchRow) State() string {
	switch {
	case r.Unanswered > 0:
		return "waits for an answer"
	case r.Valueless > 0:
		return "has no value"
	case r.Kind == client.WatchGet:
		return "kept"
	}
	return "answered"
}

type watchList struct {
	pager
	Rows []watchRow
}

// watches is the page of watches. Of those with status=problem each waits for something.
func (h *handler) watches(w http.ResponseWriter, r *http.Request) {
	f := filterOf(r)
	json := wantsJSON(r)
	if !json {
		f.Page = max(f.Page, 1)
	}
	l := watchList{pager: pager{filter: f, path: "watches"}, Rows: []watchRow{}}
	for _, row := range h.watchRows() {
		if !f.name(row.Type, row.Name) || f.Status == "problem" && row.Valueless == 0 {
			continue
		}
		if f.on(l.Total) {
			l.Rows = append(l.Rows, row)
		}
		l.Total++
	}
	if json {
		writeJSON(w, struct {
			Watches []watchRow `json:"watches"`
			Total   int        `json:"total"`
		}{l.Rows, l.Total})
		return
	}
	h.render(w, "watches", "Watches", l)
}

func (h *handler) watchRows() []watchRow {
	all := slices.Collect(h.client.Watches())
	slices.SortFunc(all, compareWatches)
	var rows []watchRow
	for i, s := range all {
		if i == 0 || compareWatches(all[i-1], s) != 0 {
			rows = append(rows, watchRow{Kind: s.Kind, Type: s.Type, Name: s.Name, Scope: s.Scope})
		}
		row := &rows[len(rows)-1]
		row.Watches++
		row.Names += s.Names
		row.Unanswered += s.Unanswered
		row.Valueless += s.Valueless
	}
	return rows
}

func compareWatches(a, b client.WatchState) int {
	return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), strings.Compare(a.Scope, b.Scope), cmp.Compare(a.Kind, b.Kind))
}

// viewRow is a view.
type viewRow struct {
	Root     string    `json:"root"` // "listener", "routes", "cluster"
	Name     string    `json:"name"`
	Host     string    `json:"host,omitempty"`
	State    string    `json:"state"`
	Snapshot uint64    `json:"snapshot"` // its number; 0 before the first
	Clusters int       `json:"clusters"`
	Error    string    `json:"error,omitempty"`
	Waiting  []waiting `json:"waiting"`
}

// Words for the state of a view.
const (
	viewComplete = "complete"
	viewPart     = "waits for a part"
	viewFirst    = "waits for its first snapshot"
	viewError    = "error"
	viewEnded    = "ended"
)

type waiting struct {
	Type     string    `json:"type"`
	Name     string    `json:"name"`
	Since    time.Time `json:"since"`
	Reason   string    `json:"reason"`
	Blocking bool      `json:"blocking"`
}

var rootWords = map[view.RootType]string{view.RootListener: "listener", view.RootRoutes: "routes", view.RootCluster: "cluster"}

func viewOf(v *view.View) viewRow {
	root := v.Root()
	row := viewRow{Root: rootWords[root.Type], Name: root.Name, Host: root.Host, State: viewFirst, Waiting: []waiting{}}
	for _, w := range v.Waiting() {
		row.Waiting = append(row.Waiting, waiting(w))
	}
	if s := v.Snapshot(); s != nil {
		row.Snapshot = s.Serial
		for range s.Clusters() {
			row.Clusters++
		}
		switch {
		case s.Err != nil:
			row.State, row.Error = viewError, s.Err.Error()
		case s.Complete:
			row.State = viewComplete
		default:
			row.State = viewPart
		}
	}
	if err := v.Err(); err != nil {
		row.State, row.Error = viewEnded, err.Error()
	}
	return row
}

type viewList struct {
	pager
	Rows []viewRow
}

// views is the page of views: those that are not complete first.
func (h *handler) views(w http.ResponseWriter, r *http.Request) {
	f := filterOf(r)
	json := wantsJSON(r)
	if !json {
		f.Page = max(f.Page, 1)
	}
	l := viewList{pager: pager{filter: f, path: "views"}, Rows: []viewRow{}}
	for _, row := range h.viewRows(f) {
		if f.on(l.Total) {
			l.Rows = append(l.Rows, row)
		}
		l.Total++
	}
	if json {
		writeJSON(w, struct {
			Views []viewRow `json:"views"`
			Total int       `json:"total"`
		}{l.Rows, l.Total})
		return
	}
	h.render(w, "views", "Views", l)
}

// viewRows are the views that a filter lets pass, those that are not complete first, then by name.
func (h *handler) viewRows(f filter) (all []viewRow) {
	if h.config.Views == nil {
		return nil
	}
	for v := range h.config.Views {
		if row := viewOf(v); f.name(row.Root, row.Name) && (f.Status != "problem" || row.State != viewComplete) {
			all = append(all, row)
		}
	}
	slices.SortStableFunc(all, func(a, b viewRow) int {
		return cmp.Or(a.rank()-b.rank(), strings.Compare(a.Name, b.Name))
	})
	return all
}

func (r viewRow) rank() int {
	if r.State == viewComplete {
		return 1
	}
	return 0
}

// exchangeList is the page of exchanges, the newest first.
type exchangeList struct {
	Recorded  bool       `json:"recorded"` // there is a Recorder
	Exchanges []exchange `json:"exchanges"`
}

func (h *handler) exchanges(w http.ResponseWriter, r *http.Request) {
	l := exchangeList{Recorded: h.config.Recorder != nil, Exchanges: []exchange{}}
	if l.Recorded {
		l.Exchanges = append(l.Exchanges, h.config.Recorder.latest()...)
	}
	if wantsJSON(r) {
		writeJSON(w, l)
		return
	}
	h.render(w, "exchanges", "Exchanges", l)
}
