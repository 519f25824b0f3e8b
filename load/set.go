package load

// Set keeps the clusters that a program uses in step with snapshots of a view. A nil Set counts
// nothing. It is not safe for concurrent use.
type Set struct {
	reporter *Reporter
	held     map[setKey]*setEntry
}

type setKey struct{ server, cluster, service string }

type setEntry struct {
	cluster *Cluster
	used    bool // since the last Sweep
}

// NewSet makes an empty set.
func (r *Reporter) NewSet() *Set { return &Set{r, map[setKey]*setEntry{}} }

// Use is [Reporter.Cluster], once for equal targets: the set has the cluster until a Sweep before
// which it was not used.
func (s *Set) Use(t Target) *Cluster {
	if s == nil || s.reporter == nil || t.Server == "" {
		return nil
	}
	at := setKey{t.Server, t.Cluster, t.Service}
	e := s.held[at]
	if e == nil {
		e = &setEntry{cluster: s.reporter.Cluster(t)}
		s.held[at] = e
	} else if e.cluster != nil {
		e.cluster.entry.filter.Store(newFilter(t.Metrics))
	}
	e.used = true
	return e.cluster
}

// Close closes all clusters. The set may be used again.
func (s *Set) Close() {
	s.Sweep()
	s.Sweep()
}

// Sweep closes the clusters that were not used since the last Sweep.
func (s *Set) Sweep() {
	if s == nil {
		return
	}
	for at, e := range s.held {
		if !e.used {
			e.cluster.Close()
			delete(s.held, at)
		}
		e.used = false
	}
}
