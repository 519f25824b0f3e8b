package main

import (
	"fmt"
	"log"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// stream is one stream of a scenario.
type stream struct {
	*server
	ss       grpc.ServerStream
	sc       kit.Scenario
	res      *canned
	delta    bool
	typ      string
	from, to int // resources that the server of this stream has
	commands chan command

	owed       int // responses sent and not acknowledged; with the server's lock
	nonce      uint64
	full       bool   // the first state was sent
	resumed    bool   // by a client that said versions (delta, with a limit)
	subscribed int    // names
	known      []bool // by resource: the client has it, or was sent it (incr, a delta reconnect)
	remaining  int    // changes, or rounds of heartbeats, to send
}

// received is a request, or the end of them.
type received struct {
	b   []byte
	err error
}

func (s *server) serve(ss grpc.ServerStream, number int, delta bool) error {
	t := s.begun(ss, delta)
	defer s.ended(t)
	if t.res == nil || delta != t.res.delta || number >= t.sc.Servers {
		return status.Error(codes.FailedPrecondition, "no scenario for this kind of stream")
	}
	t.typ = t.sc.TypeURL()
	t.from, t.to = t.sc.Range(number)
	t.known = make([]bool, t.sc.N)
	return t.run()
}

func (s *server) begun(ss grpc.ServerStream, delta bool) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &stream{server: s, ss: ss, sc: s.scenario, res: s.resources, delta: delta, commands: make(chan command, 1)}
	if s.streams == nil {
		return t // before the first scenario
	}
	s.streams[t] = true
	s.commands = t.commands
	s.stats.Streams++
	return t
}

// ended forgets a stream, which may be of a scenario that is over.
func (s *server) ended(t *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, t)
	s.moved.Broadcast()
}

func (t *stream) run() error {
	in := make(chan received)
	go t.receive(in)
	for {
		select {
		case c := <-t.commands:
			if err := t.command(c); err != nil {
				return err
			}
		case r := <-in:
			if r.err != nil {
				return r.err
			}
			if err := t.request(r.b); err != nil {
				return err
			}
		}
	}
}

func (t *stream) receive(in chan<- received) {
	for {
		var b []byte
		err := t.ss.RecvMsg(&b)
		if t.sc.Limit > 0 && len(b) > t.sc.Limit {
			err = status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", len(b), t.sc.Limit)
		}
		select {
		case in <- received{b, err}:
		case <-t.ss.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (t *stream) command(c command) error {
	if c.kill {
		// The last, so that whoever decodes in order has decoded all.
		t.res.change(t.sc.N-1, stampOf(t.nextSeq()))
		return status.Error(codes.Unavailable, "killed")
	}
	t.remaining = c.updates
	return t.change()
}

func (t *stream) nextSeq() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq++
	return t.seq
}

// stampOf is the stamp of a change that is sent now.
func stampOf(seq int) []byte { return fmt.Appendf(nil, "%019d%06d", time.Now().UnixNano(), seq) }

// change sends the next change or round of heartbeats, if there is one and the last was
// acknowledged.
func (t *stream) change() error {
	if t.remaining == 0 || !t.acknowledged() {
		return nil
	}
	t.remaining--
	seq := t.nextSeq()
	stamp := stampOf(seq)
	defer t.sent()
	if t.sc.Work == kit.Heartbeat {
		return t.send(t.res.heartbeats(t.from, t.to), t.to-t.from, stamp)
	}
	i := seq * 7919 % t.sc.N
	t.res.change(i, stamp)
	if t.delta {
		return t.send(t.res.entry(i), 1, stamp)
	}
	return t.send(t.res.arena, t.sc.N, stamp)
}

func (t *stream) acknowledged() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owed == 0
}

// sent tells who waits that there is less to send.
func (t *stream) sent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = t.remaining
	t.moved.Broadcast()
}

func (t *stream) send(body []byte, count int, stamp []byte) error {
	t.nonce++
	h := header(t.typ, count, t.nonce, stamp)
	t.mu.Lock()
	t.owed++
	t.stats.Resps++
	t.stats.RespBytes += int64(len(h) + len(body))
	t.mu.Unlock()
	return t.ss.SendMsg(mem.BufferSlice{mem.SliceBuffer(h), mem.SliceBuffer(body)})
}

// sendSome sends resources by number.
func (t *stream) sendSome(which []int, stamp []byte) error {
	if len(which) == 0 {
		return nil
	}
	body := make([]byte, 0, len(which)*t.res.size)
	for _, i := range which {
		body = append(body, t.res.entry(i)...)
	}
	return t.send(body, len(which), stamp)
}

// request takes a request and answers it.
func (t *stream) request(b []byte) error {
	first := t.nonce == 0 // nothing was sent yet
	r, fresh, stale := t.scanner()
	if err := r.scan(b, t.delta); err != nil {
		log.Print(err)
		return err
	}
	t.count(r, len(b), first)
	if t.delta {
		t.subscribed += r.names - r.gone
	} else {
		t.subscribed = r.names
	}
	t.publish()
	zero := []byte(kit.ZeroStamp)
	switch {
	case t.sc.Work == kit.Incr:
		return t.sendSome(t.unknown(*fresh), zero)
	case t.resumed || t.sc.Limit > 0 && !t.full && r.inits > 0 && r.names > 0:
		t.full, t.resumed = true, true
		return t.sendNewest(append(*stale, t.unknown(*fresh)...))
	case !t.full && r.inits > 0:
		return t.missing(*stale)
	case !t.full && (t.subscribed == t.sc.Subscriptions() || first && t.subscribed == 0):
		t.full = true
		if t.sc.Work == kit.Reconnect {
			zero = append([]byte(nil), t.res.stampOf(t.sc.N-1)...)
		}
		return t.send(t.res.entries(t.from, t.to), t.to-t.from, zero)
	}
	return t.change()
}

// scanner is a request that collects the resources whose names it subscribes to, where they are
// answered one by one, and those of which the client has an old version (a delta reconnect).
func (t *stream) scanner() (r *request, fresh, stale *[]int) {
	r, fresh, stale = &request{}, new([]int), new([]int)
	if t.sc.Work == kit.Incr || t.sc.Limit > 0 {
		r.each = func(name []byte) { *fresh = append(*fresh, kit.Index(string(name))) }
	}
	if t.delta && !t.full {
		r.initial = func(name, version []byte) {
			i := kit.Index(string(name))
			t.known[i] = true
			if string(version) != string(t.res.version(i)) {
				*stale = append(*stale, i)
			}
		}
	}
	return r, fresh, stale
}

// unknown are those resources that the client does not have; now they are sent to it.
func (t *stream) unknown(which []int) []int {
	return slices.DeleteFunc(which, func(i int) bool {
		was := t.known[i]
		t.known[i] = true
		return was
	})
}

// count takes a request into the statistics.
func (t *stream) count(r *request, size int, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Reqs++
	t.stats.ReqBytes += int64(size)
	if !first && len(r.nonce) > 8 && string(r.nonce[:8]) == fmt.Sprintf("%08d", t.nonce) {
		t.owed = 0
		t.moved.Broadcast()
	}
	if r.nack != nil {
		log.Printf("NACK: %q", r.nack)
	}
}

// publish tells who waits how many names are subscribed.
func (t *stream) publish() {
	if t.sc.Work != kit.Cancel {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = t.subscribed
	t.moved.Broadcast()
}

// missing answers a delta reconnect: what is stale, and what the client does not have.
func (t *stream) missing(stale []int) error {
	t.full = true
	for i, known := range t.known {
		if !known {
			stale = append(stale, i)
		}
	}
	return t.sendNewest(stale)
}

// sendNewest sends resources that the client has no version of, or an old one.
func (t *stream) sendNewest(which []int) error {
	if len(which) == 0 {
		return nil
	}
	return t.sendSome(which, t.res.stampOf(which[0]))
}
