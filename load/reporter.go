package load

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// Config configures a [Reporter]. Its zero value works.
type Config struct {
	// Logger hears of streams (at DEBUG), and of what cannot be reported or honoured (at WARN).
	// nil means none.
	Logger *slog.Logger
	// CloseTimeout is how long Close waits for the last reports. 0 means a second; negative not at
	// all.
	CloseTimeout time.Duration
}

const defaultCloseTimeout = time.Second

// Reporter counts for clusters, and reports to their management servers: over one stream to each,
// while a program uses a cluster that its server wants reports of. A nil Reporter counts nothing.
// Its methods are safe for concurrent use.
type Reporter struct {
	client *client.Client
	config Config

	stopping context.Context // ends when Close begins
	stop     context.CancelFunc
	life     context.Context // ends when it does not wait any longer
	end      context.CancelFunc
	work     sync.WaitGroup // a goroutine for each server, and a reader for each stream

	mu      sync.Mutex // guards the fields below, and those of servers and entries that say so
	closed  bool
	servers map[string]*server // by URI
}

// New makes a reporter for the servers of a client, whose connections, credentials, headers, node
// and backoff it uses. It does no I/O. The caller closes it before the client.
func New(c *client.Client, config Config) *Reporter {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.CloseTimeout == 0 {
		config.CloseTimeout = defaultCloseTimeout
	}
	r := &Reporter{client: c, config: config, servers: map[string]*server{}}
	r.stopping, r.stop = context.WithCancel(context.Background())
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// Cluster begins to count for a target, together with others who do. It is nil, and counts nothing,
// if the target has no server or no cluster, and after Close. The metrics are those of the newest
// call. Cluster neither blocks nor does I/O.
func (r *Reporter) Cluster(t Target) *Cluster {
	if r == nil || t.Server == "" || t.Cluster == "" {
		return nil
	}
	f := newFilter(t.Metrics)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	s := r.servers[t.Server]
	if s == nil {
		s = &server{reporter: r, uri: t.Server, entries: map[key]*entry{}, changed: make(chan struct{}, 1)}
		r.servers[t.Server] = s
	}
	at := key{strings.ToValidUTF8(t.Cluster, "\uFFFD"), strings.ToValidUTF8(t.Service, "\uFFFD")}
	e, known := s.entries[at]
	if !known {
		e = &entry{key: at, server: s, since: time.Now()}
		s.entries[at] = e
	}
	if e.refs == 0 && known {
		s.released--
	}
	e.filter.Store(f)
	e.refs++
	s.held++
	if s.running {
		s.look()
	} else {
		// LRS-1: a stream only while somebody reports.
		s.running = true
		r.work.Go(s.run)
	}
	return &Cluster{entry: e}
}

// release is the end of one use of a cluster.
func (e *entry) release() {
	r := e.server.reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	e.refs--
	if e.server.held--; e.server.held == 0 {
		e.server.unused = time.Now()
		e.server.look()
	}
	if e.refs > 0 {
		return
	}
	if e.server.released++; e.server.released <= maxReleased {
		return
	}
	for at, other := range e.server.entries {
		if other.refs == 0 && other != e {
			delete(e.server.entries, at)
			e.server.released--
			return
		}
	}
}

// maxReleased is how many clusters of a server are kept that are not used any more and not yet
// reported: their server cannot be reached, or has asked for nothing yet.
const maxReleased = 1000

// Close ends the counting. It sends a last report on each stream, and waits for that at most
// Config.CloseTimeout. A second call only waits for the first. The error is always nil.
func (r *Reporter) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	timer := time.AfterFunc(max(r.config.CloseTimeout, 0), r.end)
	defer timer.Stop()
	r.work.Wait()
	r.end()
	return nil
}
