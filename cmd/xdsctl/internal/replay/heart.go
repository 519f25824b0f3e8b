package replay

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/resource/vhds"
)

// heart keeps what a stream was sent with a time to live alive: when half of the shortest time of a
// type is over it sends heartbeats, which go-control-plane has only for state of the world, and for that
// at one pace for all. A client that does not know times to live is sent none.
type heart struct {
	state func() recording.State
	send  func(typeURL string, p *pulse, beats []*discoveryv3.Resource) error

	mu     sync.Mutex // held while the stream sends
	known  bool       // the client knows times to live
	ended  bool
	pulses map[string]*pulse // by type URL
}

// pulse is what heartbeats of a type are made from.
type pulse struct {
	asked          map[string]bool   // names, globs, and "*"
	named          bool              // the client has asked for names
	sent           map[string]string // versions of the resources with a time to live, by name
	version, nonce string            // of the last response that is no heartbeat
	beats          int
	timer          *time.Timer // nil until something has a time to live
}

// featureTTL is what clients say that know times to live.
const featureTTL = "xds.config.supports-resource-ttl"

// shortest is the least time between heartbeats.
const shortest = 10 * time.Millisecond

// met hears who the client is: the first request of a stream says it.
func (h *heart) met(node *corev3.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = h.known || slices.Contains(node.GetClientFeatures(), featureTTL)
}

// pulse is that of a type. The caller holds mu.
func (h *heart) pulse(typeURL string) *pulse {
	p := h.pulses[typeURL]
	if p == nil {
		p = &pulse{asked: map[string]bool{}, sent: map[string]string{}}
		h.pulses[typeURL] = p
	}
	return p
}

// asks hears which names a request adds to what was asked for, and which it takes away. A first request
// without names is for all.
func (h *heart) asks(typeURL string, add, remove []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pulse(typeURL)
	for _, name := range remove {
		delete(p.asked, name)
	}
	for _, name := range add {
		p.asked[name], p.named = true, true
	}
	if !p.named {
		p.asked["*"] = true
	}
}

// asksFor hears all names that a request asks for.
func (h *heart) asksFor(typeURL string, names []string) {
	h.mu.Lock()
	clear(h.pulse(typeURL).asked)
	h.mu.Unlock()
	h.asks(typeURL, names, nil)
}

// lives hears of a resource that is sent. It loses its time to live if the client knows none. The caller
// holds mu.
func (h *heart) lives(p *pulse, r *discoveryv3.Resource) {
	if !h.known {
		r.Ttl = nil
	}
	delete(p.sent, r.GetName())
	if r.GetTtl() != nil {
		p.sent[r.GetName()] = r.GetVersion()
	}
}

// next sets the time of the next heartbeats of a type. The caller holds mu.
func (h *heart) next(typeURL string, p *pulse) {
	var wait time.Duration
	for _, r := range h.alive(typeURL, p) {
		if ttl := r.Content.GetTtl().AsDuration(); wait == 0 || ttl < wait {
			wait = max(ttl, 1)
		}
	}
	switch wait = max(wait/2, shortest); {
	case len(p.sent) == 0 || h.ended:
	case p.timer == nil:
		p.timer = time.AfterFunc(wait, func() { h.beat(typeURL) })
	default:
		p.timer.Reset(wait)
	}
}

// alive are the resources with a time to live that a stream was sent and that are as they were. What is gone,
// or is not asked for, has no heartbeat. The caller holds mu.
func (h *heart) alive(typeURL string, p *pulse) (rs []recording.Resource) {
	state := h.state()[typeURL].Resources
	var globs []string
	for name := range p.asked {
		globs = append(globs, globsIn([]string{name})...)
	}
	for name, version := range p.sent {
		r, ok := state[name]
		asked := p.asked["*"] || p.asked[name] || matchesAny(globs, name)
		if ok && asked && r.Version == version && r.Content.GetTtl() != nil {
			rs = append(rs, r)
		}
	}
	return rs
}

// beat sends the heartbeats of a type. Of virtual hosts there are none: they are sent again.
func (h *heart) beat(typeURL string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pulses[typeURL]
	if h.ended {
		return
	}
	var beats []*discoveryv3.Resource
	for _, r := range h.alive(typeURL, p) {
		b := &discoveryv3.Resource{Name: r.Content.GetName(), Version: r.Version, Ttl: r.Content.GetTtl()}
		if typeURL == vhds.Type.TypeURL() {
			b = withVersion(r)
		}
		beats = append(beats, b)
	}
	if len(beats) > 0 {
		p.beats++
		h.ended = h.send(typeURL, p, beats) != nil
	}
	h.next(typeURL, p)
}

// heartbeat is the nonce of the next heartbeats: that of the response whose resources they keep alive, and
// their number.
func (p *pulse) heartbeat() string { return fmt.Sprintf("%s.%d", p.nonce, p.beats) }

// answered is the nonce of the response that go-control-plane knows of.
func answered(nonce string) string {
	nonce, _, _ = strings.Cut(nonce, ".")
	return nonce
}

// end ends all heartbeats, with the stream.
func (h *heart) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, p := range h.pulses {
		if p.timer != nil {
			p.timer.Stop()
		}
	}
}
