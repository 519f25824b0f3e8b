package statuspage

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

const (
	perPage    = 100
	maxQuery   = 1024      // bytes of a parameter
	maxShown   = 256 << 10 // bytes of contents on a page
	maxNameRef = 512       // bytes of a name in a link
)

// filter is what a request wants to see of a list.
type filter struct {
	Type, Query, Status string
	Page                int // from 1; 0 if none is given

	lower string
}

func filterOf(r *http.Request) filter {
	q := r.URL.Query()
	get := func(key string) string { return clip(strings.TrimSpace(q.Get(key)), maxQuery) }
	f := filter{Type: get("type"), Query: get("q"), Status: get("status")}
	f.lower = strings.ToLower(f.Query)
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 {
		f.Page = min(n, math.MaxInt32)
	}
	return f
}

// name says whether a filter lets a type and a name pass.
func (f *filter) name(typeURL, name string) bool {
	return (f.Type == "" || f.Type == typeURL || f.Type == short(typeURL)) &&
		(f.lower == "" || strings.Contains(strings.ToLower(name), f.lower))
}

func (f *filter) state(s *client.State) bool {
	switch f.Status {
	case "":
	case "problem":
		if !isProblem(s) {
			return false
		}
	default:
		if string(s.Status) != f.Status {
			return false
		}
	}
	return f.name(s.Type, s.Name)
}

// pager is where a page is in a list.
type pager struct {
	filter
	Total int // rows
	path  string
}

func (p pager) Pages() int { return max(1, (p.Total+perPage-1)/perPage) }
func (p pager) First() int { return min((p.Page-1)*perPage+1, p.Total) }
func (p pager) Last() int  { return min(p.Page*perPage, p.Total) }

// Prev and Next are links, "" where there is none.
func (p pager) Prev() string { return p.to(min(p.Page-1, p.Pages())) }
func (p pager) Next() string { return p.to(p.Page + 1) }

func (p pager) to(page int) string {
	if page < 1 || page > p.Pages() {
		return ""
	}
	q := url.Values{"page": {strconv.Itoa(page)}}
	for key, value := range map[string]string{"type": p.Type, "q": p.Query, "status": p.Status} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return p.path + "?" + q.Encode()
}

// on says whether a row, which is the n-th from 0, is on the page.
func (f *filter) on(n int) bool { return f.Page == 0 || n/perPage == f.Page-1 }

// resourceList is the page of resources.
type resourceList struct {
	pager
	Rows  []client.State
	Types []string
}

func (h *handler) resources(w http.ResponseWriter, r *http.Request) {
	f := filterOf(r)
	if wantsJSON(r) {
		h.streamResources(w, r, f)
		return
	}
	f.Page = max(f.Page, 1)
	l := resourceList{pager: pager{filter: f, path: "resources"}}
	for s := range h.client.States() {
		if n := len(l.Types); n == 0 || l.Types[n-1] != s.Type {
			l.Types = append(l.Types, s.Type)
		}
		if !f.state(&s) {
			continue
		}
		if f.on(l.Total) {
			l.Rows = append(l.Rows, s)
		}
		l.Total++
	}
	h.render(w, "resources", "Resources", l)
}

// streamResources writes resources as they are read.
func (h *handler) streamResources(w http.ResponseWriter, r *http.Request, f filter) {
	contents := r.URL.Query().Get("contents") == "true"
	out, form := newStream(w), contentsForm()
	out.text(`{"resources":[`)
	n, written := 0, 0
	for s := range h.client.States() {
		if !f.state(&s) {
			continue
		}
		if f.on(n) {
			if written++; written > 1 {
				out.text(",\n")
			}
			out.state(&s)
			if contents && s.Raw != nil {
				out.text(`,"resource":`)
				out.raw(form.Any(s.Type, s.Raw))
			}
			out.text("}")
			if out.err != nil || r.Context().Err() != nil {
				return
			}
		}
		n++
	}
	out.text(`],"total":` + strconv.Itoa(n) + "}\n")
	out.flush()
}

// contentsForm writes resources that are held, without what is secret, or may be.
func contentsForm() *resourcejson.Writer {
	// H-3: no secrets, and nothing that nobody can tell from one.
	return resourcejson.NewWriter(resourcejson.Options{HideUnknown: true})
}

// oneResource is the page of a resource.
type oneResource struct {
	client.State
	Text string // of the contents
	Cut  bool   // Text is only its begin
	JSON string // link
}

func (h *handler) resource(w http.ResponseWriter, r *http.Request) {
	s, ok := h.find(r.URL.Query())
	switch {
	case ok && wantsJSON(r):
		out := newStream(w)
		out.state(&s)
		if s.Raw != nil {
			out.text(`,"resource":`)
			out.raw(contentsForm().Any(s.Type, s.Raw))
		}
		out.text("}\n")
		out.flush()
		return
	case wantsJSON(r):
		writeAbsence(w, "the client knows no such resource")
		return
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		h.render(w, "unknown", "Not known", nil)
		return
	}
	page := oneResource{State: s, JSON: linkOf(s.Type, s.Name, s.Scope) + "&format=json"}
	if s.Raw != nil {
		text := string(indented(contentsForm().Any(s.Type, s.Raw), maxShown))
		page.Cut = len(text) > maxShown
		page.Text = clip(text, maxShown)
	}
	h.render(w, "resource", short(s.Type), page)
}

// find finds the resource of a link.
func (h *handler) find(q url.Values) (client.State, bool) {
	id, typeURL, name, scope := q.Get("id"), q.Get("type"), q.Get("name"), q.Get("scope")
	var types []string
	if strings.Contains(typeURL, "/") {
		types = []string{typeURL}
	}
	for s := range h.client.States(types...) {
		if id != "" && id == idOf(s.Type, s.Name, s.Scope) {
			return s, true
		}
		if id == "" && s.Name == name && s.Scope == scope && (s.Type == typeURL || short(s.Type) == typeURL) {
			return s, true
		}
	}
	return client.State{}, false
}

// idOf stands for a name that cannot stand in a link.
func idOf(typeURL, name, scope string) string {
	sum := sha256.Sum256([]byte(typeURL + "\x00" + scope + "\x00" + name))
	return hex.EncodeToString(sum[:12])
}

// linkOf leads to the page of a resource.
func linkOf(typeURL, name, scope string) string {
	if len(name) > maxNameRef || len(scope) > maxNameRef || !utf8.ValidString(name+scope) {
		return "resource?id=" + idOf(typeURL, name, scope)
	}
	q := url.Values{"type": {typeURL}, "name": {name}}
	if scope != "" {
		q.Set("scope", scope)
	}
	return "resource?" + q.Encode()
}

// state appends the fields of a resource, and leaves its object open. The shape is that of [client.State] as
// JSON, and size.
func (o *output) state(s *client.State) {
	o.text(`{"type":`)
	o.string(s.Type)
	o.field("name", s.Name)
	o.optional("authority", s.Authority)
	o.optional("scope", s.Scope)
	o.field("status", string(s.Status))
	o.optional("version", s.Version)
	o.field("server", s.Server)
	o.time("updated", s.Updated)
	o.time("failed", s.Failed)
	o.text(`,"watched":` + strconv.FormatBool(s.Watched))
	o.text(`,"size":` + strconv.Itoa(len(s.Raw)))
	if s.Kept {
		o.text(`,"kept":true`)
	}
	if s.Stale { // LKG-4
		o.text(`,"stale":true`)
	}
	o.optional("redirect", s.Redirect)
	if r := s.Refused; r != nil {
		o.text(`,"refused":{"version":`)
		o.string(r.Version)
		o.time("time", r.Time)
		o.text("}")
	}
	if s.Err == nil {
		o.text(`,"error":null`)
		return
	}
	o.text(`,"error":{"kind":`)
	o.string(kindOf(s.Err))
	o.field("message", s.Err.Error())
	o.text("}")
}

func kindOf(err error) string {
	if re, ok := err.(*client.ResourceError); ok {
		return string(re.Kind)
	}
	return ""
}

// sizeOf is how large the contents are, for people.
func sizeOf(s client.State) string {
	if s.Raw == nil {
		return ""
	}
	return bytesText(len(s.Raw))
}

// when is the time that a row speaks of: that of the last failure, or of the value.
func when(s client.State) time.Time {
	if s.Updated.IsZero() {
		return s.Failed
	}
	return s.Updated
}

// errText is an error for people.
func errText(err error) string {
	if err == nil {
		return ""
	}
	return plain(maxErrorText, strings.TrimPrefix(err.Error(), "xds: "))
}
