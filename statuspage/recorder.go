package statuspage

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// Bounds of what a Recorder keeps: a server decides what is in it.
const (
	maxExchanges = 100
	maxEnded     = 20 // streams
	maxText      = 256
	maxErrorText = 2048
)

// Recorder keeps the streams of a client and its last hundred exchanges. The zero value is empty. Its methods are
// safe for concurrent use. It takes some 100 KiB at most; texts are cut after 256 bytes, those of errors after 2048.
type Recorder struct {
	mu      sync.Mutex
	ring    []exchange // full: the oldest is at next
	next    int
	open    map[uint64]*stream
	ended   []*stream // the last of them
	dropped map[string]time.Time
}

// exchange is a request, response, ACK or NACK, or the begin or end of a stream.
type exchange struct {
	Time         time.Time `json:"time"`
	Kind         string    `json:"kind"` // "stream up", "stream down", "request", "response", "ACK", "NACK"
	Server       string    `json:"server"`
	Stream       uint64    `json:"stream"`
	Type         string    `json:"type,omitempty"`
	Version      string    `json:"version,omitempty"`
	Nonce        string    `json:"nonce,omitempty"`
	Size         int       `json:"size,omitempty"`
	Resources    int       `json:"resources,omitempty"`
	Ignored      bool      `json:"ignored,omitempty"`
	ControlPlane string    `json:"control_plane,omitempty"`
	Error        string    `json:"error,omitempty"`
}

// stream is one that is open, or has ended.
type stream struct {
	ID           uint64    `json:"id"`
	Server       string    `json:"server"`
	Type         string    `json:"type,omitempty"`
	ControlPlane string    `json:"control_plane,omitempty"`
	Up           time.Time `json:"up"`
	Down         time.Time `json:"down,omitzero"`
	LastResponse time.Time `json:"last_response,omitzero"`
	Requests     int       `json:"requests"`
	Responses    int       `json:"responses"`
	ACKs         int       `json:"acks"`
	NACKs        int       `json:"nacks"`
	Error        string    `json:"error,omitempty"`
}

// Trace returns what to put into [client.Config]: functions that record, and then call those of
// next, which may be nil. A Recorder is for one client.
func (r *Recorder) Trace(next *client.Trace) *client.Trace {
	if next == nil {
		next = &client.Trace{}
	}
	return &client.Trace{
		StreamUp: func(s client.StreamInfo) {
			r.note(s, exchange{Kind: "stream up"})
			call(next.StreamUp, s)
		},
		StreamDown: func(s client.StreamInfo, err error) {
			r.note(s, exchange{Kind: "stream down", Error: errorText(err)})
			if next.StreamDown != nil {
				next.StreamDown(s, err)
			}
		},
		Request: func(q client.RequestInfo) {
			r.note(q.Stream, exchange{Kind: "request", Type: q.Type, Size: q.Size})
			call(next.Request, q)
		},
		Response: func(p client.ResponseInfo) {
			r.note(p.Stream, exchange{
				Kind: "response", Type: p.Type, Version: p.Version, Nonce: p.Nonce, Size: p.Size,
				Resources: p.Resources, Ignored: p.Ignored, ControlPlane: p.ControlPlane,
			})
			call(next.Response, p)
		},
		ACK: func(a client.AnswerInfo) {
			r.note(a.Stream, exchange{Kind: "ACK", Type: a.Type, Version: a.Version, Nonce: a.Nonce})
			call(next.ACK, a)
		},
		NACK: func(a client.AnswerInfo) {
			r.note(a.Stream, exchange{Kind: "NACK", Type: a.Type, Version: a.Version, Nonce: a.Nonce, Error: errorText(a.Err)})
			call(next.NACK, a)
		},
	}
}

func call[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return clip(err.Error(), maxErrorText)
}

// note records an exchange on a stream.
func (r *Recorder) note(on client.StreamInfo, e exchange) {
	e.Time, e.Server, e.Stream = time.Now(), on.Server, on.ID
	for _, text := range []*string{&e.Type, &e.Version, &e.Nonce, &e.ControlPlane} {
		*text = strings.Clone(clip(*text, maxText)) // it may be a part of a response
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < maxExchanges {
		r.ring = append(r.ring, e)
	} else {
		r.ring[r.next] = e
		r.next = (r.next + 1) % maxExchanges
	}
	r.count(on, &e)
}

// count notes what an exchange says of its stream. The caller holds the lock.
func (r *Recorder) count(on client.StreamInfo, e *exchange) {
	s := r.open[on.ID]
	if s == nil {
		if e.Kind == "stream down" {
			return
		}
		if r.open == nil {
			r.open, r.dropped = map[uint64]*stream{}, map[string]time.Time{}
		}
		s = &stream{ID: on.ID, Server: on.Server, Type: on.Type, Up: e.Time}
		r.open[on.ID] = s
	}
	switch e.Kind {
	case "request":
		s.Requests++
	case "response":
		s.Responses++
		s.LastResponse, s.ControlPlane = e.Time, e.ControlPlane
	case "ACK":
		s.ACKs++
	case "NACK":
		s.NACKs++
	case "stream down":
		delete(r.open, on.ID)
		s.Down, s.Error = e.Time, e.Error
		r.dropped[s.Server] = e.Time
		if r.ended = append(r.ended, s); len(r.ended) > maxEnded {
			r.ended = slices.Delete(r.ended, 0, 1)
		}
	}
}

// latest lists the exchanges, the newest first.
func (r *Recorder) latest() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Concat(r.ring[r.next:], r.ring[:r.next])
	slices.Reverse(all)
	return all
}

// streams lists the streams: those that are open by server, type and ID, then those that have
// ended, the newest first.
func (r *Recorder) streams() (all []stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.open {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b stream) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
	for _, s := range slices.Backward(r.ended) {
		all = append(all, *s)
	}
	return all
}

// since is when a server's oldest open stream came up, or when its last one went down; zero if
// nobody knows.
func (r *Recorder) since(server string, connected bool) (at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !connected {
		return r.dropped[server]
	}
	for _, s := range r.open {
		if s.Server == server && (at.IsZero() || s.Up.Before(at)) {
			at = s.Up
		}
	}
	return at
}
