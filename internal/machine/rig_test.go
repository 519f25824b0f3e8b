package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/testutil/script"
	"github.com/xdswatch/xdswatch/xdstp"
)

// rig is a machine with one stream that is up, for what scripts cannot say: exact moments,
// many resources, the order in which workers finish.
type rig struct {
	t   *testing.T
	m   *Machine
	now time.Time
	ref Ref
	typ *Type
}

// newMachine makes a machine with servers, and sources that they answer for.
func newMachine(c Config, servers []Server, sources ...Source) *Machine {
	m := New(c)
	for _, s := range servers {
		m.AddServer(s)
	}
	for _, s := range sources {
		m.AddSource(s)
	}
	return m
}

// newRig has the one server that is given, or a plain one.
func newRig(t *testing.T, c Config, server ...Server) *rig {
	if len(server) == 0 {
		server = []Server{{}}
	}
	kind := script.Kinds()["eds"]
	return &rig{
		t: t, m: newMachine(c, server, Source{Servers: []int{0}}), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ref: Ref{Gen: 1},
		typ: &Type{URL: kind.TypeURL(), FullState: kind.FullState(), NameField: kind.NameField()},
	}
}

func (r *rig) step(events ...Event) Effects { return r.m.Step(r.now, events...) }

// up makes the stream stand and writes what is to be written then.
func (r *rig) up() {
	r.step(Up{Ref: r.ref})
	r.step(Written{r.ref})
}

func (r *rig) watch(name string) *Watch {
	return &Watch{Owner: name, Type: r.typ, Name: name, Wildcard: name == star || xdstp.IsGlob(name)}
}

// receive takes a response of n resources and returns the work that it makes.
func (r *rig) receive(version string, n int) []*Task {
	resp := &wire.Response{TypeURL: r.typ.URL, Version: version, Nonce: version}
	for i := range n {
		resp.Resources = append(resp.Resources, wire.Resource{
			Name: fmt.Appendf(nil, "r%04d", i), TypeURL: []byte(r.typ.URL),
			Payload: fmt.Appendf(nil, "%d of %s", i, version), HasBody: true,
		})
	}
	return r.step(Received{r.ref, resp}).Decode
}

// addUnanswered has the server answer for a name, and adds another, whose request leaves and is not answered.
func (r *rig) addUnanswered() {
	r.step(Start{r.watch("r0000")})
	r.up()
	for _, task := range r.receive("1", 1) {
		r.decode(task)
	}
	r.step(Delivered{r.ref}, Written{r.ref})
	r.now = r.now.Add(hush)
	r.step(Start{r.watch("b")})
	r.step(Written{r.ref})
}

// decode answers a task with the bytes themselves.
func (r *rig) decode(t *Task) Effects {
	results := make([]Result, len(t.Items))
	for i, it := range t.Items {
		results[i] = Result{Value: string(it.Raw)}
	}
	return r.step(Decoded{t, results})
}

// news lists what watches were told, as kind and name.
func news(fx Effects) (kinds []NoticeKind, names []string) {
	for _, n := range fx.Notify {
		if len(n.To)+len(n.All) > 0 {
			kinds, names = append(kinds, n.Kind), append(names, n.Name)
		}
	}
	return kinds, names
}

// consumed lists the streams of which a response is done with.
func (fx *Effects) consumed() (refs []Ref) {
	for _, n := range fx.Notify {
		if n.Kind == NoticeEnd {
			refs = append(refs, n.Stream)
		}
	}
	return refs
}
