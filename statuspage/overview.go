package statuspage

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// overview is the first page.
type overview struct {
	Node    node       `json:"node"`
	Client  string     `json:"client"` // the version of the library
	Closed  bool       `json:"closed"`
	Servers []server   `json:"servers"`
	Streams []stream   `json:"streams"` // of the Recorder
	Types   []typeRow  `json:"types"`
	Watches watchSum   `json:"watches"`
	Blocked []blocked  `json:"blocked"`
	Views   viewsCount `json:"views"`
}

// node is who the client says it is. Its metadata may hold anything, and is left out.
type node struct {
	ID      string `json:"id"`
	Cluster string `json:"cluster,omitempty"`
}

// Words for the state of a server.
const (
	serverConnected = "connected"
	serverDown      = "not connected"
	serverIdle      = "not used"
)

type server struct {
	URI         string    `json:"uri"`
	Authorities []string  `json:"authorities"` // that it answers for; "" is that of names without one
	State       string    `json:"state"`
	Since       time.Time `json:"since,omitzero"`
	Error       string    `json:"error,omitempty"`
	Resources   int       `json:"resources"` // that it sent, and are held
}

// typeRow counts the resources of a type by status. Collections are resources here, as in the list.
type typeRow struct {
	Type     string                `json:"type"`
	Total    int                   `json:"total"`
	Statuses map[client.Status]int `json:"statuses"`
	Problems int                   `json:"problems"`
	Bytes    int                   `json:"bytes"`
	Updated  time.Time             `json:"updated,omitzero"` // the newest
}

type watchSum struct {
	Watches    int `json:"watches"`
	Names      int `json:"names"`
	Unanswered int `json:"unanswered"`
	Valueless  int `json:"valueless"`
}

type blocked struct {
	Type    string  `json:"type,omitempty"`
	Name    string  `json:"name,omitempty"`
	Seconds float64 `json:"seconds"`
	Waiting int     `json:"waiting"`
}

type viewsCount struct {
	Views      int `json:"views"`
	Incomplete int `json:"incomplete"`
}

func (h *handler) overview(w http.ResponseWriter, r *http.Request) {
	o := h.takeStock()
	if wantsJSON(r) {
		writeJSON(w, o)
		return
	}
	h.render(w, "overview", "Overview", o)
}

// takeStock looks at everything once.
func (h *handler) takeStock() *overview {
	n := h.client.Node()
	o := &overview{
		Node: node{n.GetId(), n.GetCluster()}, Client: client.Version, Closed: h.closed(),
		Streams: []stream{}, Blocked: []blocked{}, Views: h.countViews(),
	}
	health := h.client.Health()
	o.Types, o.Servers = h.takeStates(h.knownServers(health.Servers))
	if h.config.Recorder != nil {
		o.Streams = append(o.Streams, h.config.Recorder.streams()...)
	}
	for ws := range h.client.Watches() {
		o.Watches.Watches++
		o.Watches.Names += ws.Names
		o.Watches.Unanswered += ws.Unanswered
		o.Watches.Valueless += ws.Valueless
	}
	for _, b := range health.Blocked {
		o.Blocked = append(o.Blocked, blocked{b.Type, b.Name, b.For.Seconds(), b.Waiting})
	}
	return o
}

// takeStates counts resources by their types and servers.
func (h *handler) takeStates(known map[string]*server) ([]typeRow, []server) {
	types := map[string]*typeRow{}
	for s := range h.client.States() {
		t := types[s.Type]
		if t == nil {
			t = &typeRow{Type: s.Type, Statuses: map[client.Status]int{}}
			types[s.Type] = t
		}
		t.add(&s)
		if at := known[s.Server]; at != nil {
			at.add(&s)
		}
	}
	rows := []typeRow{}
	for _, url := range slices.Sorted(maps.Keys(types)) {
		rows = append(rows, *types[url])
	}
	return rows, serversOf(known)
}

func (h *handler) countViews() (n viewsCount) {
	if h.config.Views == nil {
		return n
	}
	for v := range h.config.Views {
		n.Views++
		if s := v.Snapshot(); s == nil || !s.Complete || s.Err != nil {
			n.Incomplete++
		}
	}
	return n
}

func (t *typeRow) add(s *client.State) {
	t.Total++
	t.Statuses[s.Status]++
	t.Bytes += len(s.Raw)
	if isProblem(s) {
		t.Problems++
	}
	if s.Updated.After(t.Updated) {
		t.Updated = s.Updated
	}
}

// knownServers are those of the bootstrap, and those that are used besides.
func (h *handler) knownServers(health []client.ServerHealth) map[string]*server {
	known := map[string]*server{}
	at := func(uri string) *server {
		if known[uri] == nil {
			known[uri] = &server{URI: uri, State: serverIdle, Authorities: []string{}}
		}
		return known[uri]
	}
	boot := h.client.Bootstrap()
	for _, s := range boot.Servers {
		s := at(s.Name())
		s.Authorities = append(s.Authorities, "")
	}
	for _, name := range slices.Sorted(maps.Keys(boot.Authorities)) {
		for _, s := range boot.Authorities[name].Servers {
			s := at(s.Name())
			s.Authorities = append(s.Authorities, name)
		}
	}
	for _, sh := range health {
		s := at(sh.Server)
		if s.State = serverDown; sh.Connected {
			s.State = serverConnected
		}
		if h.config.Recorder != nil {
			s.Since = h.config.Recorder.since(s.URI, sh.Connected)
		}
	}
	return known
}

// serversOf lists servers, those that are used first.
func serversOf(known map[string]*server) []server {
	all := []server{}
	for _, s := range known {
		if s.Authorities = slices.Compact(s.Authorities); s.State != serverDown {
			s.Error = ""
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b server) int {
		return cmp.Or(strings.Compare(a.State, b.State), strings.Compare(a.URI, b.URI))
	})
	return all
}

// add notes what a resource says of its server.
func (s *server) add(state *client.State) {
	if state.Raw != nil {
		s.Resources++
	}
	if s.Error != "" || state.Err == nil {
		return
	}
	if re, ok := errors.AsType[*client.ResourceError](state.Err); ok && (re.Kind == client.ErrorConnection || re.Kind == client.ErrorStream) {
		if s.Error = clip(re.Error(), maxErrorText); s.Since.IsZero() {
			s.Since = state.Failed
		}
	}
}

// isProblem says whether somebody should look at a resource.
func isProblem(s *client.State) bool { return s.Status != "ACKED" || s.Err != nil }
