package follow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/xdstp"
)

const (
	typeName = "test.T"
	typeURL  = resource.TypePrefix + typeName
)

// text is a type whose values are their bytes; "bad" is none.
type text struct{ resource.AnyType }

func (text) TypeURL() string { return typeURL }
func (text) Decode(_ resource.Source, b []byte) (any, error) {
	if string(b) == "bad" {
		return nil, errors.New("it is bad")
	}
	return string(b), nil
}

// at is a name of an authority, and dir that of a list collection.
func at(name string) string {
	authority, id, _ := strings.Cut(name, "/")
	if strings.HasPrefix(id, "/") {
		return "xdstp://" + authority + "/" + typeName + "Collection" + id
	}
	return "xdstp://" + authority + "/" + typeName + "/" + id
}

// short is the reverse, for what is compared.
var short = strings.NewReplacer("xdstp://", "", "/"+typeName+"Collection/", "//", "/"+typeName+"/", "/", "%2F", "/", "%3A", ":", "%3a", ":", "%2f", "/")

func locator(t testing.TB, s string) xdstp.Locator {
	t.Helper()
	l, err := xdstp.ParseLocator(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// desk is a host without servers. It tells each watch what it is told to hold.
type desk struct {
	t      testing.TB
	kind   listing.Kind
	live   map[*machine.Watch]bool
	queue  []func()
	state  map[string]machine.Notice // by name; what the server said last
	most   int                       // names of another authority, for one
	lent   map[string]int            // by two authorities
	led    map[*machine.Watch]string // the two of those that are counted, "" of others
	strict bool
	heard  []string
	told   []*Told
	dead   bool
}

func newDesk(t testing.TB) *desk {
	return &desk{
		t: t, kind: listing.KindOf(text{}, &listing.Layouts{}), live: map[*machine.Watch]bool{}, state: map[string]machine.Notice{},
		most: 100, lent: map[string]int{}, led: map[*machine.Watch]string{},
	}
}

func (d *desk) Lead(by *xdstp.Locator, to xdstp.Locator, _ bool) (*machine.Watch, *machine.Fault) {
	if to.Name.Authority == "nowhere" {
		return nil, &machine.Fault{Kind: machine.FaultConfig, Err: errors.New("no such authority")}
	}
	w := &machine.Watch{Name: to.Name.String()}
	if by == nil || by.Name.Authority == to.Name.Authority {
		d.led[w] = ""
		return w, nil
	}
	pair := by.Name.Authority + " of " + to.Name.Authority
	if d.lent[pair] >= d.most {
		return nil, &machine.Fault{Kind: machine.FaultData, Err: errors.New("too much is asked")}
	}
	d.lent[pair]++
	d.led[w] = pair
	return w, nil
}

func (d *desk) Strict(int) bool { return d.strict }

func (d *desk) Start(ws ...*machine.Watch) {
	for _, w := range ws {
		if d.live[w] {
			d.t.Errorf("%s is started twice", w.Name)
		}
		d.live[w] = true
		if n, ok := d.state[w.Name]; ok {
			d.queue = append(d.queue, func() { d.tell(w, n) })
		}
	}
}

func (d *desk) Stop(w *machine.Watch) {
	pair, led := d.led[w]
	if !led && !d.live[w] {
		d.t.Errorf("%s is stopped and does not live", w.Name)
	}
	if pair != "" {
		d.lent[pair]--
	}
	delete(d.led, w)
	delete(d.live, w)
}

// engineSink is engine.Sink, which these tests would link gRPC for.
type engineSink interface {
	Tell(*machine.Notice) bool
	Alive() bool
	Flush(last bool)
}

var _ engineSink = (*node)(nil)

// tell tells a watch. A flush is wanted for what the program is told.
func (d *desk) tell(w *machine.Watch, n machine.Notice) {
	if d.live[w] {
		d.flushed(func() bool { return w.Owner.(engineSink).Tell(&n) })
	}
}

func (d *desk) flushed(tell func() (wantsFlush bool)) {
	d.t.Helper()
	before := len(d.told)
	if wants := tell(); wants != (len(d.told) > before) {
		d.t.Errorf("a flush is wanted: %t; told was %d times", wants, len(d.told)-before)
	}
}

// drain tells what waits to be told.
func (d *desk) drain() {
	for len(d.queue) > 0 {
		next := d.queue[0]
		d.queue = d.queue[1:]
		next()
	}
}

// say has the server of a name say something of it.
func (d *desk) say(name string, n machine.Notice) {
	name = at(name)
	n.Name = name
	if n.Kind != machine.NoticeAmbient {
		d.state[name] = n
	}
	for _, w := range d.watches(name) {
		d.queue = append(d.queue, func() { d.tell(w, n) })
	}
	d.drain()
}

// watches are those of a name that live.
func (d *desk) watches(name string) (ws []*machine.Watch) {
	for w := range d.live {
		if w.Name == name {
			ws = append(ws, w)
		}
	}
	return ws
}

func value(v string) machine.Notice {
	return machine.Notice{News: machine.News{Kind: machine.NoticeUpdated, Value: v, Raw: []byte(v), Version: v}}
}

func absent() machine.Notice {
	return machine.Notice{News: machine.News{Kind: machine.NoticeDoesNotExist, Reason: machine.ReasonRemoved}}
}

func failed(k machine.FaultKind, text string) machine.Notice {
	return machine.Notice{News: machine.News{Kind: machine.NoticeFailed, Fault: &machine.Fault{Kind: k, Err: errors.New(text)}}}
}

func down() machine.Notice { return failed(machine.FaultConnection, "down") }

func ambient(text string) machine.Notice {
	n := failed(machine.FaultConnection, text)
	n.Kind = machine.NoticeAmbient
	return n
}

func well() machine.Notice { return machine.Notice{News: machine.News{Kind: machine.NoticeAmbient}} }

func (d *desk) redirect(to string) machine.Notice {
	return machine.Notice{News: machine.News{Kind: machine.NoticeUpdated, Value: &listing.Redirect{To: locator(d.t, to)}, Raw: []byte(to)}}
}

// list is a directory: of "name=value" inline, "name>locator" an inline redirect, ">locator" a
// located member.
func (d *desk) list(entries ...string) machine.Notice {
	field := func(num protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
	}
	var raw []byte
	for _, e := range entries {
		i := strings.IndexAny(e, "=>")
		name, what := e[:i], e[i+1:]
		var entry []byte
		switch {
		case e[i] == '>' && name == "":
			entry = field(1, []byte(what))
		default:
			url := typeURL
			if e[i] == '>' {
				url = resource.TypePrefix + "xds.core.v3.ResourceLocator"
				what = string(field(1, []byte(what)))
			}
			any := slices.Concat(field(1, []byte(url)), field(2, []byte(what)))
			entry = field(2, slices.Concat(field(1, []byte(name)), field(3, any)))
		}
		raw = append(raw, field(1, entry)...)
	}
	v, err := d.kind.Decode(resource.Source{}, raw)
	if err != nil {
		d.t.Fatal(err)
	}
	return machine.Notice{News: machine.News{Kind: machine.NoticeUpdated, Value: v, Raw: raw, Version: "l"}}
}

// Alive, Hear and Flush implement Sink.
func (d *desk) Alive() bool { return !d.dead }
func (d *desk) Flush(bool)  {}
func (d *desk) Hear(t *Told) bool {
	d.heard = append(d.heard, line(t))
	d.inspect(t)
	return true
}

// inspect looks at what a line of what is told leaves out.
func (d *desk) inspect(t *Told) {
	d.t.Helper()
	d.told = append(d.told, t)
	name, _ := xdstp.ParseLocator(t.Name)
	errorType := typeURL
	if _, entry := name.Entry(); !entry && name.Name.IsListCollection(typeURL) {
		errorType = xdstp.ListCollectionURL(typeURL)
	}
	if t.Type != typeURL || t.TypeURL != errorType || t.Authority != name.Name.Authority && name.Name.Authority != "" {
		d.t.Errorf("%s: the type is %s, that of an error %s, and the authority %q", line(t), t.Type, t.TypeURL, t.Authority)
	}
}

var kinds = map[machine.NoticeKind]string{
	machine.NoticeUpdated: "updated", machine.NoticeDoesNotExist: "does-not-exist", machine.NoticeFailed: "failed",
	machine.NoticeAmbient: "ambient", machine.NoticeSynced: "synced",
}

func line(t *Told) string {
	s := kinds[t.Kind] + " " + t.Name
	switch {
	case t.Kind == machine.NoticeUpdated:
		s += fmt.Sprint(" ", t.Value)
	case t.Kind == machine.NoticeDoesNotExist:
		s += " " + t.Reason.String()
	case t.Fault != nil:
		s += fmt.Sprintf(" %s: %v", t.Fault.Kind, t.Fault.Err)
	}
	if t.Fault != nil && t.At != "" {
		s += " at " + t.At
	}
	if t.Locator != "" {
		s += " via " + t.Locator
	}
	if t.Also != nil {
		s += " also " + kinds[t.Also.Kind]
	}
	return short.Replace(s)
}

// taker hands the notices of the watch that a tree was made for to the tree.
type taker struct{ *Tree }

func (x taker) Tell(n *machine.Notice) bool {
	_, wantsFlush := x.Take(n)
	return wantsFlush
}

func (x taker) Alive() bool     { return x.sink.Alive() }
func (x taker) Flush(last bool) { x.sink.Flush(last) }

// one follows a name that the program watches.
func (d *desk) one(name string) *Tree {
	l := locator(d.t, name)
	w := &machine.Watch{Name: l.Name.String()}
	tree := New(d, Asked{TypeURL: typeURL, Name: name, At: &l}, w, d)
	w.Owner = taker{tree}
	d.Start(w)
	d.drain()
	return tree
}

func (d *desk) all(name string) *Tree {
	l := locator(d.t, name)
	w := &machine.Watch{Name: l.Name.String()}
	c := New(d, Asked{TypeURL: typeURL, Name: l.String(), At: &l, List: true}, w, d)
	w.Owner = taker{c}
	d.Start(w)
	d.drain()
	return c
}

// since compares what was heard since the last call.
func (d *desk) since(want ...string) {
	d.t.Helper()
	if !slices.Equal(d.heard, want) {
		d.t.Errorf("heard\n\t%s\nwant\n\t%s", strings.Join(d.heard, "\n\t"), strings.Join(want, "\n\t"))
	}
	d.heard = nil
}

// watched compares the names that are watched.
func (d *desk) watched(want ...string) {
	d.t.Helper()
	var got []string
	for w := range d.live {
		got = append(got, short.Replace(w.Name))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		d.t.Errorf("watched are %q, want %q", got, want)
	}
}

func xdstpOf(name string) xdstp.Locator {
	l, err := xdstp.ParseLocator(at(name))
	if err != nil {
		panic(err)
	}
	return l
}

func directive(alt xdstp.Locator) xdstp.Directive { return xdstp.Directive{Alt: &alt} }
