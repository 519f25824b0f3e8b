package load

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// The names of metrics in lrs_report_endpoint_metrics (gRFC A85).
const (
	cpuUtilization         = "cpu_utilization"
	memUtilization         = "mem_utilization"
	applicationUtilization = "application_utilization"
	namedPrefix            = "named_metrics."
)

// filter says which metrics of endpoints are reported. It is immutable; nil is none.
type filter struct {
	cpu, mem, app bool
	all           bool            // named metrics
	named         map[string]bool // else these
}

func newFilter(names []string) *filter {
	f := &filter{named: map[string]bool{}}
	for _, name := range names {
		// LRS-f: names that are not known are ignored.
		switch key, named := strings.CutPrefix(name, namedPrefix); {
		case name == cpuUtilization:
			f.cpu = true
		case name == memUtilization:
			f.mem = true
		case name == applicationUtilization:
			f.app = true
		case named && key == "*":
			f.all = true
		case named && key != "":
			f.named[key] = true
		}
	}
	// LRS-4: nothing is reported unless the cluster asks for it.
	if !f.cpu && !f.mem && !f.app && !f.all && len(f.named) == 0 {
		return nil
	}
	return f
}

// How many named metrics are kept of a locality or an endpoint, and how long their names may be, in bytes,
// since endpoints name them.
const (
	maxMetrics    = 1000
	maxMetricName = 256
)

// metrics sums up what endpoints say of themselves.
type metrics struct {
	byName sync.Map // name → *metric
	n      atomic.Int64
}

// metric is a sum. What was taken for a report is pending until the report was sent.
type metric struct {
	count atomic.Uint64
	sum   atomic.Uint64 // bits of a float64

	pendingCount uint64
	pendingSum   float64
}

func (ms *metrics) record(f *filter, r *orcav3.OrcaLoadReport) {
	// Fields without a value are 0, which says nothing (proto3).
	unnamed := func(wanted bool, name string, value float64) {
		if wanted && value != 0 {
			ms.add(name, value)
		}
	}
	unnamed(f.cpu, cpuUtilization, r.GetCpuUtilization())
	unnamed(f.mem, memUtilization, r.GetMemUtilization())
	unnamed(f.app, applicationUtilization, r.GetApplicationUtilization())
	for key, value := range r.GetNamedMetrics() {
		if (f.all || f.named[key]) && len(key) <= maxMetricName {
			ms.add(namedPrefix+key, value)
		}
	}
}

func (ms *metrics) add(name string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return // it would spoil the sum
	}
	known, ok := ms.byName.Load(name)
	if !ok {
		if ms.n.Load() >= maxMetrics {
			return
		}
		if known, ok = ms.byName.LoadOrStore(strings.ToValidUTF8(name, "\uFFFD"), &metric{}); !ok {
			ms.n.Add(1)
		}
	}
	m := known.(*metric)
	for {
		old := m.sum.Load()
		if m.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+value)) {
			break
		}
	}
	m.count.Add(1)
}

// take gathers what there is to report, by name.
func (ms *metrics) take() (list []*endpointv3.EndpointLoadMetricStats) {
	for name, known := range ms.byName.Range {
		m := known.(*metric)
		m.pendingCount += m.count.Swap(0)
		m.pendingSum += math.Float64frombits(m.sum.Swap(0))
		if m.pendingCount > 0 {
			list = append(list, &endpointv3.EndpointLoadMetricStats{
				MetricName: name.(string), NumRequestsFinishedWithMetric: m.pendingCount, TotalMetricValue: m.pendingSum,
			})
		}
	}
	slices.SortFunc(list, func(a, b *endpointv3.EndpointLoadMetricStats) int {
		return strings.Compare(a.GetMetricName(), b.GetMetricName())
	})
	return list
}

// sent forgets what was taken.
func (ms *metrics) sent() {
	for _, known := range ms.byName.Range {
		m := known.(*metric)
		if m.pendingCount > 0 {
			m.pendingCount, m.pendingSum = 0, 0
		}
	}
}

// place puts metrics into a locality's report: those that have fields of their own, and others.
func placeMetrics(to *endpointv3.UpstreamLocalityStats, list []*endpointv3.EndpointLoadMetricStats) {
	for _, m := range list {
		own := &endpointv3.UnnamedEndpointLoadMetricStats{
			NumRequestsFinishedWithMetric: m.GetNumRequestsFinishedWithMetric(), TotalMetricValue: m.GetTotalMetricValue(),
		}
		switch m.GetMetricName() {
		case cpuUtilization:
			to.CpuUtilization = own
		case memUtilization:
			to.MemUtilization = own
		case applicationUtilization:
			to.ApplicationUtilization = own
		default:
			to.LoadMetricStats = append(to.LoadMetricStats, m)
		}
	}
}
