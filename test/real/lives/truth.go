package lives

import (
	"maps"
	"slices"
	"sync"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
)

// typ is a type by its short name.
type typ string

const (
	clusters  typ = "cds" // its responses in state of the world hold everything
	endpoints typ = "eds" // its do not
)

func (t typ) kind() resource.AnyType {
	if t == endpoints {
		return eds.Type
	}
	return cds.Type
}

func (t typ) url() string { return t.kind().TypeURL() }

// message makes the resource that says text.
func (t typ) message(name, text string) proto.Message {
	if t == endpoints {
		return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{
			{Locality: &corev3.Locality{Zone: text}},
		}}
	}
	return &clusterv3.Cluster{Name: name, AltStatName: text}
}

// text is what a resource says.
func text(value any) string {
	switch m := value.(type) {
	case *clusterv3.Cluster:
		return m.GetAltStatName()
	case *endpointv3.ClusterLoadAssignment:
		return m.GetEndpoints()[0].GetLocality().GetZone()
	}
	return "?"
}

// content is what there is of a type: texts by name.
type content map[string]string

// epoch is a time in which the server held one content of a type.
type epoch struct {
	from    time.Time
	content content
}

// truth is what the server is to hold, and all that it held.
type truth struct {
	mu   sync.Mutex
	now  map[typ]content
	past map[typ][]epoch // what could be had from the server; the last one is not over
	away []outage        // of the server; the last one is maybe not over
	up   bool
}

// outage is a time in which the server could not be reached.
type outage struct{ from, to time.Time }

func newTruth() *truth {
	return &truth{now: map[typ]content{clusters: {}, endpoints: {}}, past: map[typ][]epoch{}}
}

// publish notes that from now on the server holds what there is.
func (t *truth) publish(up bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.up && !up:
		t.away = append(t.away, outage{from: time.Now()})
	case !t.up && up && len(t.away) > 0:
		t.away[len(t.away)-1].to = time.Now()
	}
	if t.up = up; !up {
		return
	}
	for k, c := range t.now {
		if n := len(t.past[k]); n == 0 || !maps.Equal(t.past[k][n-1].content, c) {
			t.past[k] = append(t.past[k], epoch{time.Now(), maps.Clone(c)})
		}
	}
}

// change makes changes to a type: texts by name, and "" for what goes.
func (t *truth) change(k typ, changes content) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, text := range changes {
		if text == "" {
			delete(t.now[k], name)
		} else {
			t.now[k][name] = text
		}
	}
}

// content is what there is of a type.
func (t *truth) content(k typ) content {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.now[k])
}

// messages is what there is of a type.
func (t *truth) messages(k typ) map[string]proto.Message {
	all := map[string]proto.Message{}
	for name, text := range t.content(k) {
		all[name] = k.message(name, text)
	}
	return all
}

// said says whether the server ever held the text of a name.
func (t *truth) said(k typ, name, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.past[k], func(e epoch) bool { return e.content[name] == text })
}

// behind is the time since which a client may not have heard of the server, at some time: it may take
// so long to be on a stream of a server that is there.
func (t *truth) behind(at time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	at = at.Add(-longest)
	for _, o := range slices.Backward(t.away) {
		if (o.to.IsZero() || o.to.After(at)) && at.After(o.from.Add(-longest)) {
			at = o.from.Add(-longest)
		}
	}
	return at
}

// since lists what was held at some time after a moment.
func (t *truth) since(k typ, at time.Time) []content {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []content
	for i, e := range t.past[k] {
		if i+1 == len(t.past[k]) || t.past[k][i+1].from.After(at) {
			all = append(all, e.content)
		}
	}
	return all
}
