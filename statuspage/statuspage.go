package statuspage

import (
	"embed"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/configdump"
	"github.com/xdswatch/xdswatch/view"
)

// Config says what the page shows. Its zero value works.
type Config struct {
	// Recorder has the streams and the exchanges, if its Trace is that of the client's configuration; nil
	// shows none.
	Recorder *Recorder
	// Views yields the views that the program has, at each request anew: [slices.Values] of a list, or
	// the second values of [view.Listeners.All]. nil for none.
	Views iter.Seq[*view.View]
	// Hosts are names besides localhost by which browsers reach a handler that listens on a loopback
	// address: that of a proxy in front of it, say. Ports do not matter.
	Hosts []string
}

// New makes the handler of a client's pages, to be mounted at a path that ends in a slash. It is safe for concurrent use, keeps
// nothing between requests, and holds up no client. After [client.Client.Close] the pages are empty.
//
// The parameters are those of a URL:
//   - format=json: JSON instead of HTML.
//   - type: the URL of a type, or its last part, such as Cluster; q: a part of the name, in any case; status: a status of [client.Status],
//     or "problem" for all but ACKED and what has an error.
//   - page: of a hundred rows, from 1. JSON has all rows without it.
//   - contents=true: resources in JSON with their contents.
//   - name, scope, or id: which resource is shown by "resource", besides type.
//
// JSON is written while the resources are read, and costs no memory for each.
func New(c *client.Client, config Config) http.Handler {
	return &handler{client: c, config: config}
}

type handler struct {
	client *client.Client
	config Config
}

//go:embed assets/style.css assets/live.js
var assets embed.FS

// policy lets a page have its own style, script and requests, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "the status page only reads", http.StatusMethodNotAllowed)
		return
	case !h.expects(r):
		http.Error(w, "the status page does not know this host; see Config.Hosts", http.StatusMisdirectedRequest)
		return
	}
	// Links are relative, so the last part of the path tells the page wherever the handler is mounted.
	dir, page := path.Split(r.URL.Path)
	serve, ok := pages[page]
	switch {
	case page == "style.css", page == "live.js":
		head.Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, assets, "assets/"+page)
	case (!ok || dir == "") && wantsJSON(r):
		writeAbsence(w, "there is no such page")
	case !ok || dir == "":
		http.NotFound(w, r)
	default:
		serve(h, w, r)
	}
}

// pages are what is served, by the last part of the path.
var pages = map[string]func(*handler, http.ResponseWriter, *http.Request){
	"":            (*handler).overview,
	"resources":   (*handler).resources,
	"resource":    (*handler).resource,
	"watches":     (*handler).watches,
	"views":       (*handler).views,
	"exchanges":   (*handler).exchanges,
	"config_dump": func(h *handler, w http.ResponseWriter, r *http.Request) { configdump.Handler(h.client).ServeHTTP(w, r) },
}

// expects says whether the Host of a request is one by which the handler may be reached. A name
// that resolves to the loopback address may be anybody's.
func (h *handler) expects(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return true
	}
	if at, err := netip.ParseAddrPort(local.String()); err != nil || !at.Addr().Unmap().IsLoopback() {
		return true
	}
	name := hostname(r.Host)
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	return slices.ContainsFunc(h.config.Hosts, func(host string) bool { return strings.EqualFold(hostname(host), name) })
}

// hostname is a host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// wantsJSON says whether a request is one of a program.
func wantsJSON(r *http.Request) bool {
	if format := r.URL.Query().Get("format"); format != "" {
		return format == "json"
	}
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// closed says whether the client is.
func (h *handler) closed() bool {
	select {
	case <-h.client.Done():
		return true
	default:
		return false
	}
}

// now is the time of a page, at the precision that people read.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
