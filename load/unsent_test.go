package load_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/transport"
)

// failing is a transport whose streams fail to send while fail is set.
type failing struct {
	transport.Builder
	fail atomic.Bool
}

func (f *failing) Build(s bootstrap.ManagementServer) (transport.Conn, error) {
	c, err := f.Builder.Build(s)
	return failingConn{c, f}, err
}

type failingConn struct {
	transport.Conn
	of *failing
}

func (c failingConn) Open(ctx context.Context, method string) (transport.Stream, error) {
	s, err := c.Conn.Open(ctx, method)
	if err != nil {
		return nil, err
	}
	return failingStream{s, c.of}, nil
}

type failingStream struct {
	transport.Stream
	of *failing
}

var errSend = errors.New("the message was not sent")

func (s failingStream) Send(msg ...[]byte) error {
	if s.of.fail.Load() {
		return errSend
	}
	return s.Stream.Send(msg...)
}

func (s failingStream) CloseSend() error { return s.Stream.(transport.SendCloser).CloseSend() }

// A report that could not be sent is in the next: requests, drops, metrics and the interval.
//
// spec: LRS-c LRS-d
func TestUnsentReport(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.r.Cluster(load.Target{Server: target, Cluster: "a", Metrics: []string{"cpu_utilization"}})
		defer c.Close()
		count := func() {
			call := c.Locality(zoneA, 0).Begin(address(1))
			call.Metrics(&orcav3.OrcaLoadReport{CpuUtilization: 0.5})
			call.End(true)
			c.Drop("flood")
		}
		st := r.accept()
		st.ask(t, time.Second)
		st.after(time.Second)
		reported := time.Now()

		count()
		r.send.fail.Store(true)
		if got := st.after(time.Second); len(got) > 0 {
			t.Fatalf("reports came although they were not sent: %v", got)
		}
		r.send.fail.Store(false)
		st = r.accept()
		count()
		st.ask(t, time.Second)
		got := st.after(time.Second)
		if len(got) != 1 {
			t.Fatalf("%d reports, want one", len(got))
		}
		if interval, since := got[0].GetLoadReportInterval().AsDuration(), time.Since(reported); interval != since {
			t.Errorf("the interval is %v, want the %v since the last report that was sent", interval, since)
		}
		got[0].LoadReportInterval = nil
		same(t, got[0].GetUpstreamLocalityStats()[0], `locality { region: "r" zone: "a" } total_issued_requests: 2 total_successful_requests: 2
			cpu_utilization { num_requests_finished_with_metric: 2 total_metric_value: 1 }`)
		if n := got[0].GetTotalDroppedRequests(); n != 2 {
			t.Errorf("%d drops are reported, want 2", n)
		}
		if issued, _ := sum(st.after(time.Second)); issued != 0 {
			t.Errorf("%d requests are reported again", issued)
		}
	})
}
