package file

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/transport"
)

// stream is a [transport.Stream] from a file. Who receives does the reading of the file.
type stream struct {
	conn    *conn
	ctx     context.Context
	cancel  context.CancelFunc
	closing sync.Once
	lookout *lookout      // nil if there are no notifications
	sent    chan struct{} // gets a value when a request came since the last

	mu      sync.Mutex
	order   []*interest // as they were first asked for
	refused error       // what the client refused of the last response that it answered
	of      string      // the nonce of that response

	// Owned by Recv.
	source  source
	checked time.Time // when the file was last looked at
	next    time.Time // when it is to be looked at; zero for never
	waiting bool      // next is when a file that is being written may be read
	nonce   uint64
	told    string // the trouble that was reported; "" for none
	end     error
}

func newStream(ctx context.Context, c *conn, l *lookout) *stream {
	s := &stream{conn: c, lookout: l, sent: make(chan struct{}, 1), next: time.Now()}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.source = source{ctx: s.ctx, path: c.path, config: c.config}
	return s
}

// Send is documented at [transport.Stream]. It never blocks.
func (s *stream) Send(msg ...[]byte) error {
	if s.ctx.Err() != nil {
		return transport.ErrStreamEnded
	}
	r, err := scanRequest(slices.Concat(msg...))
	if err != nil {
		return grpcstatus.Errorf(codes.InvalidArgument, "not a DiscoveryRequest: %v", err)
	}
	s.mu.Lock()
	s.interestIn(r.typeURL).update(r.names)
	switch {
	case r.nack:
		s.refused, s.of = &Error{Path: s.conn.path, Err: &RefusedError{TypeURL: r.typeURL, Message: r.message}}, r.nonce
	case r.nonce != s.of: // an ACK of a later response
		s.refused = nil
	}
	s.mu.Unlock()
	select {
	case s.sent <- struct{}{}:
	default:
	}
	return nil
}

func (s *stream) interestIn(typeURL string) *interest {
	for _, i := range s.order {
		if i.typeURL == typeURL {
			return i
		}
	}
	i := &interest{typeURL: typeURL}
	s.order = append(s.order, i)
	return i
}

// Recv is documented at [transport.Stream].
func (s *stream) Recv() (transport.Frame, error) {
	for s.end == nil {
		if s.ctx.Err() != nil {
			s.end = grpcstatus.FromContextError(s.ctx.Err()).Err()
			break
		}
		s.look()
		s.tell()
		frame, err := s.owed()
		if err != nil {
			s.end = grpcstatus.Error(codes.Internal, err.Error())
			s.Close()
			break
		}
		if frame.Parts != nil {
			return frame, nil
		}
		s.wait()
	}
	return transport.Frame{}, s.end
}

// look looks at the file if that is due.
func (s *stream) look() {
	now := time.Now()
	if s.next.IsZero() || now.Before(s.next) {
		return
	}
	s.arm()
	before := s.source.content
	again := s.source.check(now)
	if c := s.source.content; c != before && len(c.refers.files) > 0 {
		s.arm() // before what it refers to is looked at
	}
	// FILE-2: files that it refers to are watched too.
	again = sooner(again, s.source.checkReferences(now))
	s.checked, s.waiting = now, again > 0
	switch every := s.conn.config.Recheck; {
	case again > 0:
		s.next = now.Add(again)
	case every > 0:
		s.next = now.Add(every)
	default:
		s.next = time.Time{}
	}
}

// arm listens where the content and what it refers to may change.
func (s *stream) arm() {
	paths, dirs := []string{s.conn.path}, s.conn.watched
	if c := s.source.content; c != nil {
		paths, dirs = slices.Concat(paths, c.refers.files), slices.Concat(dirs, c.refers.dirs)
	}
	if err := s.lookout.arm(paths, dirs); err != nil {
		s.conn.config.Logger.Debug("not all changes of the file are notified", "path", s.conn.path, "error", err)
	}
}

// wait returns when there may be something to do.
func (s *stream) wait() {
	var due <-chan time.Time
	if !s.next.IsZero() {
		timer := time.NewTimer(time.Until(s.next))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-s.ctx.Done():
	case <-due:
	case <-s.sent:
	case <-s.lookout.changes():
		if !s.waiting {
			// A file that changes all the time is not read all the time.
			s.next = s.checked.Add(max(s.conn.config.Settle, 0))
		}
	}
}

// owed makes the next message for a type that was told less than there is; one without bytes
// if all know everything.
func (s *stream) owed() (transport.Frame, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.order {
		if !i.wanted() {
			continue
		}
		if frame, err := s.owedTo(i); frame.Parts != nil || err != nil {
			return frame, err
		}
	}
	return transport.Frame{}, nil
}

func (s *stream) owedTo(i *interest) (frame transport.Frame, err error) {
	src := &s.source
	c := src.content
	var msg []byte
	switch {
	case c != nil && c.answers(i.typeURL) && (i.asked || i.contents != src.contents):
		i.asked, i.contents, i.faults = false, src.contents, 0
		frame.Renewed = i.renew(src)
		msg, err = c.frame(src.path, i.typeURL, s.newNonce(), i.names)
	// FILE-4: the last good content stays, and its watches are told.
	case src.fault != nil && (i.asked || i.faults != src.faults):
		i.asked, i.faults = false, src.faults
		msg, err = s.errorFrame(i, src.fault)
	case c != nil && !c.answers(i.typeURL) && src.fault == nil && (i.asked || i.contents != src.contents):
		i.asked, i.contents, i.faults = false, src.contents, 0
		msg, err = s.errorFrame(i, s.mismatch(i))
	}
	if msg != nil {
		frame.Parts = [][]byte{msg}
	}
	return frame, err
}

func (s *stream) newNonce() string {
	s.nonce++
	return strconv.FormatUint(s.nonce, 10)
}

func (s *stream) mismatch(i *interest) error {
	if c := s.source.content; !c.empty {
		return &Error{Path: s.conn.path, Err: &TypeError{Holds: c.typeURL, Asked: i.typeURL}}
	}
	return &Error{Path: s.conn.path, Err: ErrNotCollection}
}

// errorFrame makes a response that has the fault as the error of each name that was asked
// for, the wildcard's among them, and no resources (xRFC TP3): what is held stays.
func (s *stream) errorFrame(i *interest, fault error) ([]byte, error) {
	r := &discoveryv3.DiscoveryResponse{TypeUrl: i.typeURL, Nonce: s.newNonce()}
	if c := s.source.content; c != nil {
		r.VersionInfo = c.version
	}
	detail := &status.Status{Code: int32(codeOf(fault)), Message: printed(fault.Error())}
	names := i.names
	if _, spelled := slices.BinarySearchFunc(names, star, bytes.Compare); i.wild && !spelled {
		names = append([][]byte{star}, names...)
	}
	for _, name := range names {
		r.ResourceErrors = append(r.ResourceErrors, &discoveryv3.ResourceError{
			ResourceName: &discoveryv3.ResourceName{Name: strings.ToValidUTF8(string(name), "\uFFFD")}, ErrorDetail: detail,
		})
	}
	return proto.Marshal(r)
}

// trouble is what is wrong now, as far as it is known.
func (s *stream) trouble() error {
	if s.source.fault != nil {
		return s.source.fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused != nil {
		return s.refused
	}
	for _, i := range s.order {
		if c := s.source.content; c != nil && i.wanted() && !c.answers(i.typeURL) {
			return s.mismatch(i)
		}
	}
	return s.source.unread()
}

// tell reports trouble, and its end, once.
func (s *stream) tell() {
	err := s.trouble()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == s.told {
		return
	}
	s.told = text
	log := s.conn.config.Logger
	switch {
	case err == nil:
		log.Info("the file is good again", "path", s.conn.path)
	case errors.As(err, new(*RefusedError)):
		log.Warn("resources of the file were refused; the others are used", "path", s.conn.path, "error", err)
	case errors.As(err, new(*TypeError)), errors.Is(err, ErrNotCollection):
		log.Warn("the file does not hold what it is asked for", "path", s.conn.path, "error", err)
	case errors.As(err, new(*ReferenceError)):
		log.Warn("a Secret of the file refers to one that cannot be read; it counts as what it was before", "path", s.conn.path, "error", err)
	default:
		log.Warn("the file cannot be used; what was read before stays in force", "path", s.conn.path, "error", err)
	}
	s.conn.config.Report(s.conn.path, err)
}

// Close is documented at [transport.Stream].
func (s *stream) Close() {
	s.closing.Do(func() {
		s.cancel()
		s.lookout.close()
		s.conn.forget(s)
	})
}
