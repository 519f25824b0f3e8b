package load

import (
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// maxReport is how large a message is, in bytes, when no more clusters are added to it: gRPC servers
// take 4 MiB by default.
const maxReport = 1 << 20

// report sends what was counted since the last report that was sent.
func (x *session) report(now time.Time) error {
	all := x.server.sorted()
	var batch []*entry
	req := &lrsv3.LoadStatsRequest{}
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := x.send(req); err != nil {
			return err
		}
		// LRS-c: only what was sent counts as reported.
		for _, e := range batch {
			e.commit(now)
		}
		req.ClusterStats, batch, size = nil, nil, 0
		return nil
	}
	for _, e := range all {
		if !x.wanted(e.cluster) {
			continue
		}
		stats := e.compose(now, x.asked.GetReportEndpointGranularity())
		req.ClusterStats, batch = append(req.ClusterStats, stats), append(batch, e)
		if size += proto.Size(stats); size >= maxReport {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	x.last = now
	for _, e := range all {
		x.server.forget(e, x.wanted(e.cluster))
	}
	return nil
}

// compose makes the report of a cluster, also of one without requests, as Envoy does: the
// interval is then known to have had none.
func (e *entry) compose(now time.Time, granular bool) *endpointv3.ClusterStats {
	s := &endpointv3.ClusterStats{
		ClusterName: e.cluster, ClusterServiceName: e.service,
		// LRS-d: the interval is the cluster's own.
		LoadReportInterval: durationpb.New(now.Sub(e.since)),
	}
	for _, t := range e.tallies() {
		if l := t.compose(granular); l != nil {
			s.UpstreamLocalityStats = append(s.UpstreamLocalityStats, l)
		}
	}
	for category, known := range e.drops.Range {
		d := known.(*drop)
		d.sending = d.n.Load()
		n := d.sending - d.sent
		s.TotalDroppedRequests += n
		if n > 0 && category != "" {
			s.DroppedRequests = append(s.DroppedRequests, &endpointv3.ClusterStats_DroppedRequests{
				Category: category.(string), DroppedCount: n,
			})
		}
	}
	slices.SortFunc(s.DroppedRequests, func(a, b *endpointv3.ClusterStats_DroppedRequests) int {
		return strings.Compare(a.GetCategory(), b.GetCategory())
	})
	e.busy = len(s.UpstreamLocalityStats) > 0 || s.TotalDroppedRequests > 0
	return s
}

// tallies lists the localities in order.
func (e *entry) tallies() (all []*tally) {
	for _, known := range e.localities.Range {
		all = append(all, known.(*tally))
	}
	slices.SortFunc(all, func(a, b *tally) int { return a.place.compare(b.place) })
	return all
}

// delta is what is to be reported of a place; ok is false if that is nothing.
func (s *stat) delta() (d totals, inProgress uint64, list []*endpointv3.EndpointLoadMetricStats, ok bool) {
	s.sending = s.read()
	d, inProgress, list = s.sending.minus(s.sent), s.sending.inProgress(), s.metrics.take()
	return d, inProgress, list, d != totals{} || inProgress > 0 || len(list) > 0
}

func (s *stat) commit() {
	s.sent = s.sending
	s.metrics.sent()
}

func (t *tally) compose(granular bool) *endpointv3.UpstreamLocalityStats {
	d, inProgress, list, ok := t.delta()
	if !ok {
		return nil
	}
	l := &endpointv3.UpstreamLocalityStats{
		Locality: &corev3.Locality{Region: t.place.region, Zone: t.place.zone, SubZone: t.place.subZone}, Priority: t.place.priority,
		TotalIssuedRequests: d[issued], TotalSuccessfulRequests: d[succeeded], TotalErrorRequests: d[failed],
		TotalRequestsInProgress: inProgress,
	}
	placeMetrics(l, list)
	if !granular {
		t.endpoints.Clear()
		t.leaving = nil
		return l
	}
	type report struct {
		at    endpointKey
		stats *endpointv3.UpstreamEndpointStats
	}
	var all []report
	said := func(e *endpointTally) bool {
		d, inProgress, list, ok := e.delta()
		if ok {
			all = append(all, report{e.at, &endpointv3.UpstreamEndpointStats{
				Address: e.address, TotalIssuedRequests: d[issued], TotalSuccessfulRequests: d[succeeded], TotalErrorRequests: d[failed],
				TotalRequestsInProgress: inProgress, LoadMetricStats: list,
			}})
		}
		return ok
	}
	t.leaving = slices.DeleteFunc(t.leaving, func(e *endpointTally) bool { return !said(e) })
	for at, known := range t.endpoints.Range {
		e := known.(*endpointTally)
		switch was := e.idle; {
		case said(e):
			e.idle = false
		case was:
			t.endpoints.Delete(at)
			t.leaving = append(t.leaving, e)
		default:
			e.idle = true
		}
	}
	slices.SortFunc(all, func(a, b report) int { return a.at.compare(b.at) })
	for _, r := range all {
		l.UpstreamEndpointStats = append(l.UpstreamEndpointStats, r.stats)
	}
	return l
}

// commit notes that what was composed has been sent.
func (e *entry) commit(now time.Time) {
	e.since = now
	for _, known := range e.drops.Range {
		d := known.(*drop)
		d.sent = d.sending
	}
	for _, known := range e.localities.Range {
		t := known.(*tally)
		t.commit()
		for _, known := range t.endpoints.Range {
			known.(*endpointTally).commit()
		}
		for _, e := range t.leaving {
			e.commit()
		}
	}
}

// busy says whether a request runs.
func (s *server) busy() bool {
	return slices.ContainsFunc(s.sorted(), func(e *entry) bool {
		return slices.ContainsFunc(e.tallies(), func(t *tally) bool { return t.read().inProgress() > 0 })
	})
}

// forget forgets a cluster that nobody uses, and localities in which nobody can count any more, once
// everything was reported that the server wants.
func (s *server) forget(e *entry, wanted bool) {
	s.reporter.mu.Lock()
	keep := wanted || e.refs > 0 // it may be wanted later
	s.reporter.mu.Unlock()
	e.making.Lock()
	alive := 0
	for at, known := range e.localities.Range {
		t := known.(*tally)
		held := t.handle.Load().Value() != nil // asked first: what nobody holds counts no more requests
		if now := t.read(); held || now.inProgress() > 0 || keep && now != t.sent {
			alive++
			continue
		}
		e.localities.Delete(at)
	}
	e.making.Unlock()
	if alive > 0 || wanted && e.busy {
		return
	}
	s.reporter.mu.Lock()
	defer s.reporter.mu.Unlock()
	if e.refs == 0 && s.entries[e.key] == e {
		delete(s.entries, e.key)
		s.released--
	}
}
