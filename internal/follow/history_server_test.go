package follow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// thing makes what a server has of a name.
func (p *past) thing(name string) *thing {
	list := strings.Contains(name, "//")
	switch n := p.r.IntN(10); {
	case n == 0:
		return &thing{notice: absent(), text: "absent"}
	case n == 1:
		return &thing{notice: failed(machine.FaultRejected, "refused"), text: "refused"}
	case n == 2:
		return &thing{notice: failed(machine.FaultTimeout, "late"), text: "late"}
	case n < 7 && list:
		entries := p.entries(!p.strict || p.r.IntN(3) > 0)
		return &thing{notice: p.list(entries...), text: "list " + strings.Join(entries, " ")}
	case n < 6:
		v := fmt.Sprint("v", p.r.IntN(4))
		return &thing{notice: value(v), text: v}
	}
	to := p.single()
	if list {
		to = p.all()
	}
	return &thing{notice: p.redirect(to.String()), text: "> " + to.String()}
}

// entries are those of a directory; good says that each can be used.
func (p *past) entries(good bool) (entries []string) {
	for _, e := range []string{"e", "f", "g"} {
		switch p.r.IntN(5) {
		case 0, 1:
			entries = append(entries, e+"="+pick(p, "1", "2", "3"))
		case 2:
			entries = append(entries, e+">"+p.single().String())
		}
	}
	seen := map[string]bool{}
	for range p.r.IntN(4) {
		l := p.single()
		if name := (xdstp.Locator{Scheme: l.Scheme, Name: l.Name}).String(); !good || !seen[name] && !strings.Contains(name, "Collection") {
			seen[name] = true
			entries = append(entries, ">"+l.String())
		}
	}
	if !good && p.r.IntN(2) == 0 {
		entries = append(entries, pick(p, "h=bad", "e=bad"))
	}
	p.r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return entries
}

func authority(name string) string { return name[:1] }

func (th *thing) sound() bool { return th != nil && th.notice.Kind == machine.NoticeUpdated }

// Lead implements Host.
func (p *past) Lead(by *xdstp.Locator, to xdstp.Locator, directory bool) (*machine.Watch, *machine.Fault) {
	if _, entry := to.Entry(); !directory && !entry && strings.Contains(to.Name.String(), "Collection") {
		p.t.Errorf("the resource at %v leads to the list %v", by, to)
	}
	return p.desk.Lead(by, to, directory)
}

// Start implements Host.
func (p *past) Start(ws ...*machine.Watch) {
	for _, w := range ws {
		if p.live[w] {
			p.t.Errorf("%s is started twice", w.Name)
		}
		p.live[w] = true
	}
	p.starts = append(p.starts, ws)
}

// start has the client begin what was started.
func (p *past) start() {
	ws := p.starts[0]
	p.starts = p.starts[1:]
	for _, w := range ws {
		if w.Wildcard {
			p.startAll(w)
			continue
		}
		name := short.Replace(w.Name)
		p.hold(name)
		for _, n := range p.now(name) {
			p.later(w, n)
		}
	}
}

// hold has the client know something of a name.
func (p *past) hold(name string) {
	switch {
	case p.held[name] != nil:
	case p.down[authority(name)]:
		p.held[name] = &thing{notice: unreachable, text: "down"}
	default:
		p.held[name] = p.world[name]
	}
}

// startAll has the client begin a wildcard, which is all that server a has.
func (p *past) startAll(w *machine.Watch) {
	p.whole = p.whole || !p.down["a"]
	for _, name := range stars {
		if p.whole {
			p.hold(name)
		}
		if h := p.held[name]; h != nil && p.ofMember(name, h.notice) {
			p.laterOf(w, name, h.notice)
			if h.flaw != "" {
				p.laterOf(w, name, refusal(h.flaw))
			}
		}
	}
	for _, n := range p.ofAll() {
		p.later(w, n)
	}
}

// ofAll is what a new watch of the wildcard is told of it as a whole.
func (p *past) ofAll() []machine.Notice {
	synced := machine.Notice{News: machine.News{Kind: machine.NoticeSynced}}
	switch {
	case !p.whole:
		return []machine.Notice{unreachable}
	case p.down["a"]:
		return []machine.Notice{synced, ambient("down")}
	}
	return []machine.Notice{synced}
}

// ofMember says whether a wildcard is told something under a member's name: trouble of the server, and its
// end, is told once for all.
func (p *past) ofMember(name string, n machine.Notice) bool {
	if n.Fault != nil {
		return n.Fault.Kind == machine.FaultRejected
	}
	return n.Kind != machine.NoticeAmbient || p.held[name].flaw != ""
}

// later has a watch be told in its turn.
func (p *past) later(w *machine.Watch, n machine.Notice) { p.laterOf(w, short.Replace(w.Name), n) }

func (p *past) laterOf(w *machine.Watch, name string, n machine.Notice) {
	if n.Name = name; name != "*" {
		n.Name = at(name)
	}
	p.queue = append(p.queue, func() { p.tell(w, n) })
}

// now is what a new watch of a name is told.
func (p *past) now(name string) []machine.Notice {
	h, down := p.held[name], p.down[authority(name)]
	switch {
	case down && !h.sound():
		return []machine.Notice{unreachable}
	case down:
		return []machine.Notice{h.notice, ambient("down")}
	case h.flaw != "":
		return []machine.Notice{h.notice, refusal(h.flaw)}
	}
	return []machine.Notice{h.notice}
}

var unreachable = down()

func refusal(text string) machine.Notice {
	n := failed(machine.FaultRejected, text)
	n.Kind = machine.NoticeAmbient
	return n
}

// tellAll tells all watches of a name, and of the wildcard.
func (p *past) tellAll(name string, ns ...machine.Notice) {
	for w := range p.live {
		if slices.ContainsFunc(p.starts, func(ws []*machine.Watch) bool { return slices.Contains(ws, w) }) {
			continue
		}
		for _, n := range ns {
			if short.Replace(w.Name) == name || w.Wildcard && slices.Contains(stars, name) && p.ofMember(name, n) {
				p.laterOf(w, name, n)
			}
		}
	}
}

// fetch has the client hear what a server has of a name.
func (p *past) fetch(name string) {
	was, is := p.held[name], p.world[name]
	if was == nil || p.down[authority(name)] || was == is {
		return
	}
	// gRFC A88: a bad update takes no good value away, unless the server asks for that.
	if is.notice.Kind == machine.NoticeFailed && was.sound() && !p.strict {
		if is.notice.Fault.Kind == machine.FaultRejected {
			kept := *was
			kept.flaw = is.notice.Fault.Err.Error()
			p.held[name] = &kept
			p.tellAll(name, refusal(kept.flaw))
		}
		return
	}
	p.held[name] = is
	p.tellAll(name, is.notice)
}

// change changes a resource of a server.
func (p *past) change(name string, th *thing) {
	p.world[name] = th
	p.note("%s is %s", name, th.text)
	p.fetch(name)
}

// turn takes a server away or brings it back.
func (p *past) turn(a string) {
	p.down[a] = !p.down[a]
	p.note("%s is down: %v", a, p.down[a])
	if a == "a" {
		p.turnAll()
	}
	for _, name := range p.names() {
		h := p.held[name]
		if h == nil || authority(name) != a {
			continue
		}
		switch {
		case p.down[a] && h.sound():
			p.tellAll(name, ambient("down"))
		case p.down[a]:
			p.tellAll(name, unreachable)
		case p.world[name] != h && (p.world[name].notice.Kind != machine.NoticeFailed || !h.sound()):
			p.held[name] = p.world[name]
			p.tellAll(name, p.world[name].notice)
		case h.sound():
			p.tellAll(name, well())
			kept := *h
			kept.flaw = ""
			p.held[name] = &kept
		default:
			p.tellAll(name, h.notice)
		}
	}
}

// turnAll tells the wildcard that its server is down, or back. Now and then it has lost its first state
// meanwhile.
func (p *past) turnAll() {
	if p.down["a"] {
		if p.whole {
			p.tellAll("*", ambient("down"))
		}
		return
	}
	if p.whole && p.r.IntN(3) == 0 {
		p.whole = false
		p.tellAll("*", absent())
	}
	if p.whole {
		p.tellAll("*", well())
		return
	}
	p.whole = true
	for _, name := range stars {
		if h := p.held[name]; h == nil {
			p.held[name] = p.world[name]
			p.tellAll(name, p.world[name].notice)
		}
	}
	p.tellAll("*", machine.Notice{News: machine.News{Kind: machine.NoticeSynced}})
}
