package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/transport/internal/restjson"
)

const (
	// holdFirst is how long a poll has for its answer before one with another interest may
	// take its place; it doubles each time that one did, so that a server that is slow
	// comes to answer however often the interest changes.
	holdFirst = 100 * time.Millisecond
	// answerPatience is how long a poll waits for the answer to the last response, so that
	// the response is not asked for again while it is being decoded.
	answerPatience = 10 * time.Second
)

var (
	errOvertaken      = errors.New("another interest took the poll's place")
	errRequestTimeout = errors.New("no answer in time")
)

// restStream is a [Stream] that polls. Only Recv does, in the goroutine that calls it, so a
// reader that does not come back for the next response is asked for nothing.
type restStream struct {
	conn   *restConn
	ctx    context.Context
	cancel context.CancelCauseFunc
	seed   maphash.Seed

	mu       sync.Mutex
	question question
	flight   *flight       // the poll under way; nil if there is none
	hold     time.Duration // of the next flight that is overtaken
	news     chan struct{} // holds one while Recv has not seen the newest request

	// Owned by the caller of Recv.
	due     time.Time // of the next poll, if nothing makes it urgent
	handed  time.Time // when the last response was handed over
	alive   bool      // a poll of the stream was answered
	settled error     // what Recv returned last; nil while it gives messages
}

// flight is a poll under way, guarded by the stream's mutex.
type flight struct {
	began    time.Time
	cancel   context.CancelCauseFunc
	overtake *time.Timer // ends it for another interest; nil if none waits
}

func newRESTStream(ctx context.Context, c *restConn) *restStream {
	s := &restStream{conn: c, seed: maphash.MakeSeed(), hold: holdFirst, news: make(chan struct{}, 1)}
	s.question.v2 = c.v2
	s.ctx, s.cancel = c.bound(ctx)
	return s
}

// Send is documented at [Stream]. The message is an encoded DiscoveryRequest; it is what
// the next poll says, unless another is sent before. Send does not wait for the poll.
func (s *restStream) Send(msg ...[]byte) error {
	if s.ctx.Err() != nil {
		return ErrStreamEnded
	}
	request := &discoveryv3.DiscoveryRequest{}
	if err := proto.Unmarshal(slices.Concat(msg...), request); err != nil {
		s.cancel(status.Errorf(codes.Internal, "not a DiscoveryRequest: %v", err))
		return ErrStreamEnded
	}
	s.mu.Lock()
	s.question.take(request)
	if s.question.urgent && s.flight != nil {
		s.overtakeLocked(s.flight)
	}
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
	return nil
}

// overtakeLocked ends a poll whose interest has changed, when it had its time.
func (s *restStream) overtakeLocked(f *flight) {
	if f.overtake == nil {
		f.overtake = time.AfterFunc(s.hold-time.Since(f.began), func() { f.cancel(errOvertaken) })
	}
}

// Recv is documented at [Stream]. It polls until there is something new.
func (s *restStream) Recv() (Frame, error) {
	if s.settled != nil {
		return Frame{}, s.settled
	}
	for {
		frame, err := s.next()
		if err != nil {
			// A connection that was closed is the truer reason than what came of it.
			s.settled = restError(s.conn, cmp.Or(context.Cause(s.conn.ctx), err))
			s.cancel(s.settled)
			return Frame{}, s.settled
		}
		if frame != nil {
			return *frame, nil
		}
	}
}

// next makes the next poll when it is due. The frame is nil if it brought nothing new.
func (s *restStream) next() (frame *Frame, err error) {
	if err := s.await(); err != nil {
		return nil, err
	}
	e := s.conn.endpoint()
	s.mu.Lock()
	p, err := s.question.begin(e)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	path, err := s.conn.path(p.request.GetTypeUrl())
	if err != nil {
		return nil, err
	}
	t := &turn{holder: &s.conn.holder, timeout: s.conn.rest.RequestTimeout}
	defer func() {
		if frame == nil {
			t.share.release()
		}
	}()
	a, err := s.fly(e, t, path, p)
	if errors.Is(err, errOvertaken) {
		return nil, nil // an urgent poll follows
	}
	if err == nil {
		frame, err = s.read(e, p, a)
	}
	if frame != nil {
		frame.share = t.share
	}
	if err != nil {
		if s.ctx.Err() == nil {
			s.conn.failed(e)
		}
		// P-8: the error is told as a poll's.
		return nil, &pollError{endpoint: e, path: path, err: err}
	}
	delay := s.conn.rest.RefreshDelay
	// REST-3: the delay and its jitter, after the answer.
	s.due = time.Now().Add(min(delay, math.MaxInt64/2) + rand.N(min(delay, math.MaxInt64/2)))
	return frame, nil
}

// await returns when a poll is due: at once if the interest has changed, or else by the
// clock; but not before the last response was answered.
func (s *restStream) await() error {
	for {
		s.mu.Lock()
		first, urgent, owed := s.question.request == nil, s.question.urgent, s.question.owed
		s.mu.Unlock()
		at := s.due
		if urgent {
			at = time.Time{}
		}
		if patience := s.handed.Add(answerPatience); owed && at.Before(patience) {
			at = patience
		}
		if err := s.ctx.Err(); err != nil {
			return context.Cause(s.ctx)
		}
		wait := time.Until(at)
		if !first && wait <= 0 {
			return nil
		}
		s.sleep(wait, first)
	}
}

// sleep waits for a while, or for ever, and no longer than for news or the stream's end.
func (s *restStream) sleep(d time.Duration, forever bool) {
	var over <-chan time.Time
	if !forever {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-s.news:
	case <-s.ctx.Done():
	}
}

// fly makes a poll. Its error is errOvertaken if it was given up for another interest.
func (s *restStream) fly(e *restEndpoint, t *turn, path string, p poll) (answer, error) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	t.timer = time.AfterFunc(t.timeout, func() { cancel(errRequestTimeout) })
	t.slow = func() { cancel(errSlow) }
	defer t.timer.Stop()
	s.takeOff(&flight{began: time.Now(), cancel: cancel})
	header, err := s.conn.header(ctx, e, path)
	var a answer
	if err == nil {
		a, err = e.post(ctx, t, path, header, p.body)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // the truer reason
	}
	s.land(errors.Is(err, errOvertaken))
	return a, err
}

func (s *restStream) takeOff(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight = f
	if s.question.urgent { // since it began
		s.overtakeLocked(f)
	}
}

func (s *restStream) land(overtaken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if timer := s.flight.overtake; timer != nil {
		timer.Stop()
	}
	s.flight = nil
	if overtaken {
		s.hold = min(2*s.hold, s.conn.rest.RequestTimeout)
	} else {
		s.hold = holdFirst
	}
}

// unchangedURL is the type of a response that says nothing but that the server answered,
// which ends what is known of its trouble. It is nobody's.
const unchangedURL = "xdswatch.unchanged"

// read makes a frame of an answer; nil if it says nothing new.
func (s *restStream) read(e *restEndpoint, p poll, a answer) (*Frame, error) {
	switch a.status {
	// REST-2: unchanged.
	case http.StatusNotModified:
		return s.unchanged(p)
	case http.StatusOK:
		return s.response(e, p, a)
	}
	// REST-2: what is held stays.
	return nil, &statusError{a}
}

func (s *restStream) unchanged(p poll) (*Frame, error) {
	s.mu.Lock()
	s.question.answered(p)
	s.question.unchanged(p)
	s.mu.Unlock()
	if s.alive {
		return nil, nil
	}
	s.alive = true
	b, err := proto.Marshal(&discoveryv3.DiscoveryResponse{TypeUrl: unchangedURL})
	return &Frame{Parts: [][]byte{b}}, err
}

// ttlKey is in each body with a time to live.
var ttlKey = []byte(`"ttl"`)

// response passes over a body that is the last one again, and decodes no JSON then; but one with a time to live begins that
// anew.
func (s *restStream) response(e *restEndpoint, p poll, a answer) (*Frame, error) {
	s.mu.Lock()
	s.question.answered(p)
	fresh := s.question.fresh(p, maphash.Bytes(s.seed, a.body)|1)
	limited := bytes.Contains(a.body, ttlKey)
	s.question.limited, s.question.from = limited, e
	s.mu.Unlock()
	if !fresh && !limited { // TTL-1
		return nil, nil
	}
	m, err := s.convert(a.body)
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	if err != nil {
		return nil, &bodyError{a, err}
	}
	if asked := p.request.GetTypeUrl(); !s.conn.answers(m.TypeURL, asked) {
		return nil, &typeError{asked, m.TypeURL}
	}
	s.mu.Lock()
	s.question.handOver()
	s.mu.Unlock()
	s.alive, s.handed = true, time.Now()
	return &Frame{Parts: [][]byte{m.Frame}, Faults: m.Faults}, nil
}

// convert makes a frame of a body. The end of the stream does not wait for it: what is left of a
// conversion goes on for nobody, and soon ends.
func (s *restStream) convert(body []byte) (m *restjson.Message, err error) {
	done := make(chan struct{})
	var made *restjson.Message
	var fault error
	go func() {
		defer close(done)
		made, fault = restjson.Response(s.ctx, body, s.conn.types)
	}()
	select {
	case <-done:
		return made, fault
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}

// Close is documented at [Stream].
func (s *restStream) Close() { s.cancel(errStreamClosed) }
