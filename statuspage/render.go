package statuspage

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

//go:embed assets/*.html
var sources embed.FS

// templates write what they are given escaped for where it stands (html/template), and texts of servers
// also bounded and printable, by text, name and err.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"short":   func(url string) string { return plain(maxText, short(url)) },
	"text":    func(s string) string { return plain(maxText, s) },
	"err":     errText,
	"message": func(s string) string { return plain(maxErrorText, strings.TrimPrefix(s, "xds: ")) },
	"bytes":   bytesText,
	"number":  number,
	"size":    sizeOf,
	"when":    when,
	"stamp":   stamp,
	"link":    linkOf,
	"tone":    tone,
	"first":   func(n int, all []waiting) []waiting { return all[:min(n, len(all))] },
	"minus":   func(a, b int) int { return a - b },
	"statuses": func() []client.Status {
		return []client.Status{"ACKED", "NACKED", "REQUESTED", "DOES_NOT_EXIST", "TIMEOUT", "RECEIVED_ERROR"}
	},
}).ParseFS(sources, "assets/*.html"))

// page is what is on every page.
type page struct {
	Name, Title, Node string
	At                time.Time
	Closed            bool
	Body              any
}

// render writes a page.
func (h *handler) render(w http.ResponseWriter, name, title string, body any) {
	p := page{Name: name, Title: title, Node: h.client.Node().GetId(), At: now(), Closed: h.closed(), Body: body}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name+".html", p); err != nil {
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the reader may be gone
}

// moment is a time as a page shows it.
type moment struct{ Machine, Age, Exact string }

func stamp(t time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	return &moment{t.UTC().Format(time.RFC3339Nano), age(time.Since(t)), t.UTC().Format("2006-01-02 15:04:05.000 UTC")}
}

// tone is how a state looks beside its word.
func tone(state any) string {
	switch s := state.(type) {
	case client.Status:
		switch s {
		case "ACKED":
			return "good"
		case "NACKED", "RECEIVED_ERROR":
			return "bad"
		case "DOES_NOT_EXIST", "TIMEOUT":
			return "warn"
		}
	case string:
		switch s {
		case serverConnected, viewComplete, "ACK", "answered", "open", "stream up":
			return "good"
		case serverDown, viewError, "NACK", "stream down":
			return "bad"
		case viewPart, viewFirst, "has no value", "waits for an answer":
			return "warn"
		}
	}
	return "calm"
}
