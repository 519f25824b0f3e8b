package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
)

// Text writes each record as a line for people: time, event, type, name, and what matters
// of the rest, in columns. Of resources it shows a summary.
type Text struct {
	TextOptions

	mu  sync.Mutex // guards what follows
	out io.Writer
	buf bytes.Buffer
	widths
}

// TextOptions are the ways of writing text.
type TextOptions struct {
	Color   bool           // with the escape sequences of terminals
	Zone    *time.Location // in which times are shown; required
	Servers bool           // say which server an update or an answer is of
}

// widths of the columns that grow with what is in them.
type widths struct{ typ, name int }

const (
	eventWidth   = len(EventDoesNotExist)
	minTypeWidth = 4
	minNameWidth = 16
	// A name that is longer than this pushes the rest of its own line aside, and not that
	// of all later ones.
	maxNameWidth = 48
	// So does a longer cell of a table: of 10,000 rows beside one name of a megabyte each would take a megabyte.
	maxCellWidth = 200
)

// NewText makes a printer of text.
func NewText(out io.Writer, o TextOptions) *Text {
	return &Text{out: out, TextOptions: o, widths: widths{minTypeWidth, minNameWidth}}
}

// Print implements [Printer].
func (t *Text) Print(r Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Reset()
	switch r := r.(type) {
	case Update:
		t.row(r.Head, r.Type, r.Name, details(
			version(r.Version), size(len(r.Resource.Raw)), summary(r.Resource.Message), labelled("at", r.Locator), t.from(r.Server), stale(r.Stale)))
	case Absent:
		t.row(r.Head, r.Type, r.Name, absence(r))
	case Fault:
		t.row(r.Head, r.Type, r.Name, fault(r.Error, "all is well again"))
	case Synced:
		t.row(r.Head, r.Type, r.Name, details("the first state is complete", stale(r.Stale)))
	case Stream:
		t.row(r.Head, r.Type, r.Server, t.end(r))
	case Answer:
		t.row(r.Head, r.Type, "", details(version(r.Version), nonce(r.Nonce), t.from(r.Server), fault(r.Error, "")))
	case Dump:
		t.dump(r)
	default:
		t.view(r)
	}
	_, err := t.out.Write(t.buf.Bytes())
	return err
}

// row writes one line.
func (t *Text) row(h Head, typeURL, name, rest string) {
	typ, name := Clean(subscription.Short(typeURL)), Clean(name)
	if typ == "" {
		typ = "-"
	}
	t.typ = max(t.typ, utf8.RuneCountInString(typ))
	if n := utf8.RuneCountInString(name); n <= maxNameWidth {
		t.name = max(t.name, n)
	}
	line := fmt.Sprintf("%s  %s  %-*s  %-*s  %s", time.Time(h.Time).In(t.Zone).Format("15:04:05.000"),
		t.paint(h.Event, eventWidth), t.typ, typ, t.name, name, Clean(rest))
	t.buf.WriteString(strings.TrimRight(line, " "))
	t.buf.WriteByte('\n')
}

func (t *Text) end(s Stream) string {
	if s.Event == EventStreamUp {
		return ""
	}
	return fault(s.Error, "closed by the client")
}

// details joins what there is.
func details(parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, "  ")
}

// from tells servers apart where there are several.
func (t *Text) from(server string) string {
	if !t.Servers {
		return ""
	}
	return labelled("from", server)
}

// stale marks what is from the store.
func stale(is bool) string {
	if !is {
		return ""
	}
	return "stale, from the store"
}

func version(v string) string { return labelled("version", v) }

func nonce(n string) string { return labelled("nonce", n) }

func labelled(label, value string) string {
	if value == "" {
		return ""
	}
	return label + " " + value
}

func fault(e *Error, none string) string {
	if e == nil {
		return none
	}
	return e.Kind + ": " + e.Cause
}

// absence says in words that there is no resource.
func absence(r Absent) string { return r.Reason + ": " + r.Why() }

// reasonTimeout is the reason of an [Absent] that the server did not say.
const reasonTimeout = "timeout"

// Why says in words why there is no resource.
func (r Absent) Why() string {
	words := map[string]string{
		reasonTimeout: "the server did not answer in time",
		"removed":     "the server removed it",
		"absent":      "the server's full state does not hold it",
		"not-found":   "the server says that there is none",
		"ttl":         "its time to live ran out",
	}
	text := words[r.Reason]
	if r.Instead != nil {
		text += "; " + r.Instead.Text
	}
	return text
}

// size of a payload.
func size(n int) string {
	const unit = 1024
	switch {
	case n < unit:
		return fmt.Sprintf("%d B", n)
	case n < unit*unit:
		return fmt.Sprintf("%.1f KiB", float64(n)/unit)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/unit/unit)
}

// Clean makes a text harmless to a terminal: what does not show, ends of lines too, is written as an
// escape.
func Clean(s string) string {
	if strings.IndexFunc(s, hidden) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\u00a0': // as in errors of protobuf
			b.WriteByte(' ')
		case hidden(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

// Colours, by the number of the escape sequence.
const (
	red    = 31
	green  = 32
	yellow = 33
	cyan   = 36
	grey   = 90
)

var colours = map[string]int{
	EventUpdate: green, EventSynced: cyan, EventDoesNotExist: yellow, EventAmbientError: yellow,
	EventConfig: green, EventWaiting: yellow, EventRemoved: yellow,
	EventError: red, EventNACK: red, EventStreamDown: yellow, EventStreamUp: cyan, EventACK: grey,
}

// paint pads a word and, where it may, colours it.
func (t *Text) paint(word string, width int) string {
	padding := strings.Repeat(" ", max(0, width-len(word)))
	if !t.Color || colours[word] == 0 {
		return word + padding
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m%s", colours[word], word, padding)
}

// dump writes a table below a line of its own.
func (t *Text) dump(d Dump) {
	now := time.Time(d.Time)
	rows := [][]string{{"TYPE", "NAME", "STATUS", "VERSION", "AGE", "SERVER", "REMARKS"}}
	for _, s := range d.Subscriptions {
		rows = append(rows, []string{
			subscription.Short(s.Type), s.Name, s.Status, s.Version, age(now, s.Updated), s.Server,
			details(labelled("redirects to", s.Redirect), fault(s.Error, "")),
		})
	}
	t.row(d.Head, "", "", count(len(d.Subscriptions), "subscription or held resource", "subscriptions and held resources"))
	table(&t.buf, "  ", rows)
}

// table writes rows in columns; empty cells are dashes, but the last.
func table(out *bytes.Buffer, indent string, rows [][]string) {
	last := len(rows[0]) - 1
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range row {
			if row[i] = Clean(row[i]); i != last {
				row[i] = cmp.Or(row[i], "-")
			}
			if n := utf8.RuneCountInString(row[i]); n <= maxCellWidth {
				width[i] = max(width[i], n)
			}
		}
	}
	for _, row := range rows {
		line := indent
		for i, cell := range row {
			line += fmt.Sprintf("%-*s  ", width[i], cell)
		}
		out.WriteString(strings.TrimRight(line, " "))
		out.WriteByte('\n')
	}
}

// age is how long ago something was, in its two greatest units at most.
func age(now time.Time, then *Time) string {
	if then == nil {
		return ""
	}
	const day = 24 * time.Hour
	switch d := now.Sub(time.Time(*then)); {
	case d < time.Second:
		return "0s"
	case d < time.Hour:
		return d.Truncate(time.Second).String()
	case d < day:
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	default:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
}
