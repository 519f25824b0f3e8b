package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/transport"
)

// Method is the gRPC method of the reports.
const Method = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"

// sendAllClusters is the feature of a client that can report all clusters unnamed.
const sendAllClusters = "envoy.lrs.supports_send_all_clusters"

const (
	// minInterval is the shortest time between reports.
	minInterval = time.Second
	// defaultInterval is that of a server whose own is none.
	defaultInterval = 10 * time.Second
	// linger is how long a stream stays that nobody uses any more, if no report comes first.
	linger = 10 * time.Second
	// sendTimeout is how long a server is waited for that takes no report.
	sendTimeout = 30 * time.Second
)

// server is one that gets reports. A goroutine of its own, which lives while somebody reports,
// opens streams, one after the other, and sends reports.
type server struct {
	reporter *Reporter
	uri      string
	granular atomic.Bool   // endpoints are counted
	changed  chan struct{} // of one: held has changed

	// Guarded by the reporter.
	entries  map[key]*entry
	held     int       // uses of entries
	released int       // entries without a use
	unused   time.Time // since when nothing is held
	running  bool
}

// look has the goroutine look at what has changed.
func (s *server) look() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// over says whether nobody reports any more; then the goroutine has to end.
func (s *server) over() bool {
	s.reporter.mu.Lock()
	defer s.reporter.mu.Unlock()
	if s.held > 0 && s.reporter.stopping.Err() == nil {
		return false
	}
	s.running = false
	return true
}

// idle is since when nobody uses the server; zero while somebody does.
func (s *server) idle() time.Time {
	s.reporter.mu.Lock()
	defer s.reporter.mu.Unlock()
	if s.held > 0 {
		return time.Time{}
	}
	return s.unused
}

func (s *server) run() {
	logger := s.reporter.config.Logger.With("server", s.uri)
	conn, err := s.reporter.client.Connect(s.uri)
	if err != nil {
		logger.Warn("load cannot be reported", "error", err)
		s.reporter.mu.Lock()
		s.running = false // until the next cluster
		s.reporter.mu.Unlock()
		return
	}
	defer conn.Close()
	warned := false
	for !s.over() {
		served, err := s.stream(conn)
		if err == nil {
			continue // nobody reports, or somebody again
		}
		if status.Code(err) == codes.Unimplemented && !warned {
			warned = true
			logger.Warn("the server has no load reports", "error", err)
		}
		// LRS-3: the backoff is that of other streams.
		wait := conn.Pause(served)
		logger.Debug("the stream of load reports has ended", "error", err, "wait", wait)
		s.sleep(wait)
	}
}

// sleep waits, unless nobody reports any more.
func (s *server) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for s.idle().IsZero() {
		select {
		case <-timer.C:
			return
		case <-s.reporter.stopping.Done():
			return
		case <-s.changed:
		}
	}
}

// session is one stream.
type session struct {
	server   *server
	stream   transport.Stream
	incoming chan *lrsv3.LoadStatsResponse
	ended    chan struct{}
	err      error // why it ended; set before ended is closed

	asked  *lrsv3.LoadStatsResponse // nil before the first
	all    map[string]bool          // its clusters
	every  time.Duration
	warned bool      // of an interval
	last   time.Time // the last report on this stream, or else the first response
	again  time.Time // since when a stream that nobody uses only waits for requests that run on
}

// stream opens a stream and reports on it until it ends. The error is nil if that was not needed
// any more.
func (s *server) stream(conn *client.Connection) (served bool, err error) {
	ctx, cancel := context.WithCancel(s.reporter.life)
	defer cancel()
	opened := context.AfterFunc(s.reporter.stopping, cancel)
	ts, err := conn.Open(ctx, Method)
	if err != nil {
		return false, err
	}
	defer ts.Close()
	opened()
	node := s.reporter.client.Node()
	if !slices.Contains(node.ClientFeatures, sendAllClusters) {
		node.ClientFeatures = append(node.ClientFeatures, sendAllClusters)
	}
	x := &session{server: s, stream: ts, incoming: make(chan *lrsv3.LoadStatsResponse), ended: make(chan struct{})}
	s.reporter.work.Go(func() { x.read(ctx) })
	// LRS-1: the first request has the node alone.
	if err = x.send(&lrsv3.LoadStatsRequest{Node: node}); err == nil {
		err = x.serve()
	}
	return x.asked != nil, x.reason(err)
}

// reason is why the stream has ended, if err says no more than that it has.
func (x *session) reason(err error) error {
	if !errors.Is(err, transport.ErrStreamEnded) {
		return err
	}
	for {
		select {
		case <-x.incoming: // it comes too late
		case <-x.ended:
			return x.err
		}
	}
}

func (x *session) send(req *lrsv3.LoadStatsRequest) error {
	b, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	deaf := time.AfterFunc(sendTimeout, x.stream.Close)
	// LRS-c: what Send has taken counts as sent, also where the stream was closed at that moment.
	if err = x.stream.Send(b); !deaf.Stop() && err != nil {
		return errDeaf
	}
	return err
}

// errDeaf ends a stream that would block for as long as its server does not read.
var errDeaf = fmt.Errorf("the server took no report for %v", sendTimeout)

// read passes responses on.
func (x *session) read(ctx context.Context) {
	defer close(x.ended)
	for {
		frame, err := x.stream.Recv()
		var r *lrsv3.LoadStatsResponse
		if err == nil {
			r, err = decode(bytes.Join(frame.Parts, nil))
			frame.Free()
		}
		if err != nil {
			x.err = err
			return
		}
		select {
		case x.incoming <- r:
		case <-ctx.Done():
			x.err = ctx.Err()
			return
		}
	}
}

// serve reports until the stream ends.
func (x *session) serve() error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(x.wait(time.Now()))
		select {
		case r := <-x.incoming:
			x.take(r)
		case <-x.ended:
			return x.err
		case <-x.server.reporter.stopping.Done():
			return x.finish()
		case <-x.server.changed:
		case <-timer.C:
			if over, err := x.tick(time.Now()); over || err != nil {
				return err
			}
		}
	}
}

// wait is how long there is nothing to do.
func (x *session) wait(now time.Time) time.Duration {
	wait := time.Hour
	if x.asked != nil {
		wait = min(wait, x.last.Add(x.every).Sub(now))
	}
	if ends, idle := x.ends(); idle {
		wait = min(wait, ends.Sub(now))
	}
	return max(wait, 0)
}

// ends is when the stream ends at the latest unless a request runs; idle is false while somebody
// uses the server.
func (x *session) ends() (at time.Time, idle bool) {
	since := x.server.idle()
	if since.IsZero() {
		return since, false
	}
	if x.again.After(since) {
		since = x.again
	}
	return since.Add(linger), true
}

// tick does what is due. It says whether the stream was ended, since nobody reports any more.
func (x *session) tick(now time.Time) (over bool, err error) {
	due := x.asked != nil && !now.Before(x.last.Add(x.every))
	if ends, idle := x.ends(); idle && (due || !now.Before(ends)) {
		if !x.server.busy() {
			return true, x.finish()
		}
		x.again = now // requests that run on are reported too
	}
	if due {
		err = x.report(now)
	}
	return false, err
}

// take honours a response.
func (x *session) take(r *lrsv3.LoadStatsResponse) {
	// LRS-b: each replaces what was asked for before.
	if x.asked == nil {
		x.last = time.Now()
	}
	// LRS-2: the response says which clusters, and how often.
	x.asked, x.all = r, make(map[string]bool, len(r.GetClusters()))
	for _, name := range r.GetClusters() {
		x.all[name] = true
	}
	x.every = x.interval(r)
	x.server.granular.Store(r.GetReportEndpointGranularity())
	x.server.reporter.config.Logger.Debug("the server asks for load reports", "server", x.server.uri, "interval", x.every,
		"all", r.GetSendAllClusters(), "clusters", len(x.all), "endpoints", r.GetReportEndpointGranularity())
}

// interval is the time between reports that a response asks for.
func (x *session) interval(r *lrsv3.LoadStatsResponse) time.Duration {
	d := r.GetLoadReportingInterval()
	// LRS-a: an interval that is none is refused.
	if d.CheckValid() != nil || d.AsDuration() <= 0 {
		every := x.every
		if every == 0 {
			every = defaultInterval
		}
		if !x.warned {
			x.warned = true
			x.server.reporter.config.Logger.Warn("the server asks for load reports without a valid interval",
				"server", x.server.uri, "asked", d.AsDuration(), "used", every)
		}
		return every
	}
	// LRS-2: not more often than once a second.
	return max(d.AsDuration(), minInterval)
}

// wanted says whether the server asks for a cluster.
func (x *session) wanted(name string) bool {
	// LRS-h: without names nothing is asked for.
	return x.asked.GetSendAllClusters() || x.all[name]
}

// finish sends the last report, and has the server end the stream once it has that.
func (x *session) finish() error {
	if x.asked != nil {
		if err := x.report(time.Now()); err != nil {
			return err
		}
	}
	closer, ok := x.stream.(transport.SendCloser)
	if !ok || closer.CloseSend() != nil {
		return nil
	}
	timer := time.NewTimer(defaultCloseTimeout)
	defer timer.Stop()
	for {
		select {
		case <-x.incoming: // nothing is asked for any more
		case <-x.ended:
			return nil
		case <-timer.C:
			return nil
		}
	}
}

// sorted lists the clusters of the server.
func (s *server) sorted() []*entry {
	s.reporter.mu.Lock()
	all := make([]*entry, 0, len(s.entries))
	for _, e := range s.entries {
		all = append(all, e)
	}
	s.reporter.mu.Unlock()
	slices.SortFunc(all, func(a, b *entry) int {
		if c := strings.Compare(a.cluster, b.cluster); c != 0 {
			return c
		}
		return strings.Compare(a.service, b.service)
	})
	return all
}
