package client_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// deafServer has a client watch "a" at a server that stops reading after the first request.
func deafServer(t *testing.T, test func(*rig, *testutil.Stream, *record), change ...func(*client.Config)) {
	t.Helper()
	inBubble(t, func(_ *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		st.StopReading()
		test(r, st, rec)
	}, append(change, delta)...)
}

// revision is the response with the i-th version of "a".
func revision(i int) proto.Message {
	v := fmt.Sprint(i)
	return testutil.Delta(cds.Type.TypeURL(), strings.Repeat(v, 100), []*discoveryv3.Resource{testutil.Wrapped("a", v, cluster("a", v))})
}

// A server that sends thousands of responses before it reads the first answer gets all of them read,
// and answered.
// spec: ACK-1
func TestAnswersWaitForServer(t *testing.T) {
	const n = 2000 // more than fits into what may be on its way
	deafServer(t, func(r *rig, st *testutil.Stream, rec *record) {
		sent := flood(st, n, revision)
		time.Sleep(time.Second)
		synctest.Wait()
		if sent := sent.Load(); sent != n {
			t.Errorf("%d responses were taken, want %d", sent, n)
		}
		st.ResumeReading()
		synctest.Wait()
		if got := rec.last().Version; got != fmt.Sprint(n-1) {
			t.Errorf("the last version is %q", got)
		}
		if got := st.Requests(); len(got) != 1+n {
			t.Errorf("%d requests, want the first and %d answers", len(got), n)
		}
	})
}

// A server that reads slowly, while it sends more than the client keeps answers to, is waited for.
func TestSlowServerIsWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("long: fills the buffers of a connection")
	}
	const n = 10_000
	var read atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		slow := testutil.OnRequest(func(*testutil.Stream, *testutil.Request) { time.Sleep(time.Second / 10) })
		r := newRig(t, testutil.NewServer(slow), delta, func(c *client.Config) {
			c.Trace = &client.Trace{Response: func(client.ResponseInfo) { read.Add(1) }}
		})
		_, rec := r.watch("a")
		st := r.accept()
		flood(st, n, revision)
		var most int64
		for range n / 10 / 50 {
			time.Sleep(50 * time.Second)
			synctest.Wait()
			most = max(most, read.Load()-int64(len(st.Requests())))
		}
		if most < 1000 || most > 4000 {
			t.Errorf("up to %d responses were read that were not answered", most)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := rec.last().Version; got != fmt.Sprint(n-1) {
			t.Errorf("the last version is %q", got)
		}
		if n := len(r.srv.Streams()); n != 1 {
			t.Errorf("%d streams, want the first alone", n)
		}
	})
}

// A server that sends for ever and never reads neither fills the client's memory nor keeps it waiting
// for ever: the stream ends, the log says why, and a new one begins.
func TestDeafServer(t *testing.T) {
	if testing.Short() {
		t.Skip("long: fills the buffers of a connection")
	}
	var read atomic.Int64
	var down atomic.Value
	deafServer(t, func(r *rig, st *testutil.Stream, rec *record) {
		flood(st, 1_000_000, revision)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := read.Load(); n > 4000 {
			t.Errorf("%d responses were read that cannot be answered", n)
		}
		time.Sleep(15 * time.Second)
		next := r.accept()
		<-st.Done()
		if err, _ := down.Load().(error); err == nil || !strings.Contains(err.Error(), "took no request for 30s") {
			t.Errorf("the stream ended with %v", err)
		}
		if n := strings.Count(r.log.text(), "the server does not read"); n != 1 {
			t.Errorf("%d lines in the log, want one: %s", n, r.log.text())
		}
		r.send(next, revision(1_000_000))
		synctest.Wait()
		if got := rec.last(); got.Version != "1000000" {
			t.Errorf("the last event is %v", got)
		}
	}, func(c *client.Config) {
		c.Trace = &client.Trace{
			Response:   func(client.ResponseInfo) { read.Add(1) },
			StreamDown: func(_ client.StreamInfo, err error) { down.Store(err) },
		}
	})
}
