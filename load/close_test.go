package load_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/load"
)

// Close sends what is left, and waits for no server longer than it says.
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.cluster("a")
		l := c.Locality(zoneA, 0)
		st := r.accept()
		st.ask(t, time.Hour)
		l.Begin(nil).End(true)
		begin := time.Now()
		must(t, r.r.Close())
		must(t, r.r.Close())
		if issued, _ := sum(st.reports()); issued != 1 || time.Since(begin) > 0 {
			t.Errorf("%d requests in the last report, after %v", issued, time.Since(begin))
		}
		if r.cluster("b") != nil {
			t.Error("a cluster after Close")
		}
		l.Begin(nil).End(true) // counts nothing, and hurts nobody
		c.Close()
	})
}

func TestCloseIsBounded(t *testing.T) {
	t.Run("a server that does not accept", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			r.network.Close()
			defer r.cluster("a").Close()
			synctest.Wait()
			closes(t, r, 0)
		})
	})
	t.Run("a server that does not read", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			st := deaf(t, r)
			time.Sleep(25 * time.Second)
			closes(t, r, time.Second)
			for range cap(st.requests) {
				<-st.requests
			}
		})
	})
}

// deaf is the stream of a server that stops reading, with more to report than may be on its way.
func deaf(t *testing.T, r *rig) *lrsStream {
	t.Helper()
	for i := range 500 {
		c := r.cluster(strings.Repeat("x", 1000) + fmt.Sprint(i))
		c.Locality(zoneA, 0).Begin(nil).End(true)
		t.Cleanup(c.Close)
	}
	st := r.accept()
	st.ask(t, 10*time.Second)
	for range cap(st.requests) {
		st.requests <- nil // its reader waits from now on
	}
	return st
}

// A server that does not read is not waited for without end: its stream ends, the next begins, and what the
// first did not take is reported there, once.
//
// spec: LRS-3 LRS-c
func TestServerThatDoesNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		st := deaf(t, r)
		time.Sleep(10*time.Second + 30*time.Second - 1)
		r.none()
		time.Sleep(time.Minute)
		if len(r.server.streams) == 0 {
			t.Fatal("no other stream begins")
		}
		next := r.accept()
		if logged := r.logged.text(); !strings.Contains(logged, "took no report for 30s") {
			t.Errorf("the log does not say why the stream ended:\n%s", logged)
		}
		next.ask(t, 10*time.Second)
		for range cap(st.requests) {
			<-st.requests
		}
		<-st.over
		if issued, _ := sum(append(st.reports(), next.after(10*time.Second)...)); issued != 500 {
			t.Errorf("%d requests are reported, want 500", issued)
		}
	})
}

func closes(t *testing.T, r *rig, within time.Duration) {
	t.Helper()
	begin := time.Now()
	r.r.Close()
	if took := time.Since(begin); took > within {
		t.Errorf("Close took %v", took)
	}
}

// A stream ends, and its connection, some seconds after the last cluster that is reported was
// closed: clusters that come and go keep it.
func TestLinger(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.cluster("a")
		st := r.accept()
		st.ask(t, time.Hour)
		for range 10 {
			c.Locality(zoneA, 0).Begin(nil).End(true)
			c.Close()
			time.Sleep(9 * time.Second)
			c = r.cluster("a")
		}
		c.Close()
		begin := time.Now()
		<-st.over
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("the stream ended after %v", took)
		}
		if issued, _ := sum(st.reports()); issued != 10 {
			t.Errorf("%d requests were reported, want 10", issued)
		}
		r.none()
		// It may begin again.
		defer r.cluster("a").Close()
		r.accept()
	})
}

// A server that is unknown, or not there, costs nothing but a line in the log.
func TestServersThatCannotBe(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.r.Cluster(load.Target{Server: "nobody", Cluster: "a"})
		synctest.Wait()
		c.Locality(zoneA, 0).Begin(nil).End(true)
		c.Close()
		if text := r.logged.text(); !strings.Contains(text, `the client has no server`) {
			t.Errorf("the log is %q", text)
		}
	})
}

// The waits between streams grow as those of the client's own streams do, until the server
// answers.
//
// spec: LRS-3
func TestBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		defer r.cluster("a").Close()
		st := r.accept()
		next := func(least, most time.Duration) {
			t.Helper()
			st.end <- errKilled
			begin := time.Now()
			st = r.accept()
			if wait := time.Since(begin); wait < least || wait > most {
				t.Errorf("the wait was %v, want %v to %v", wait, least, most)
			}
		}
		next(250*time.Millisecond, 750*time.Millisecond)
		next(400*time.Millisecond, 1200*time.Millisecond)
		next(640*time.Millisecond, 1920*time.Millisecond)
		st.ask(t, time.Hour)
		time.Sleep(time.Minute)
		next(0, 500*time.Millisecond)
		next(250*time.Millisecond, 750*time.Millisecond)
	})
}

// A server that has no load reports is an operator's concern, told once.
//
// spec: LRS-1
func TestServerWithoutReports(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		defer r.cluster("a").Close()
		for range 4 {
			r.accept().end <- status.Error(codes.Unimplemented, "unknown service")
		}
		synctest.Wait()
		text := r.logged.text()
		if warns := strings.Count(text, "level=WARN"); warns != 1 || strings.Count(text, "unknown service") != 5 {
			t.Errorf("the log warns %d times, want once, and has the reason each time:\n%s", warns, text)
		}
	})
}

// A report of many clusters is sent in messages that servers take.
func TestLargeReports(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		set := r.r.NewSet()
		const n = 2500
		for i := range n {
			set.Use(load.Target{Server: target, Cluster: fmt.Sprintf("%01000d", i)})
		}
		st := r.accept()
		st.ask(t, time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		clusters := 0
		for clusters < n {
			req := <-st.requests
			clusters += len(req.GetClusterStats())
			if size := proto.Size(req); size > 2<<20 {
				t.Errorf("a report has %d bytes", size)
			}
		}
	})
}

// No request is lost or counted twice, however many goroutines count.
func TestConcurrentCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		c := r.cluster("a")
		defer c.Close()
		st := r.accept()
		st.ask(t, time.Second)
		var work sync.WaitGroup
		const goroutines, each = 8, 2000
		for range goroutines {
			work.Go(func() {
				for i := range each {
					c.Locality(zoneA, uint32(i%2)).Begin(nil).End(i%3 == 0)
				}
			})
		}
		work.Wait()
		issued, finished := sum(st.after(time.Second))
		if issued != goroutines*each || finished != issued {
			t.Errorf("%d issued, %d finished, want %d", issued, finished, goroutines*each)
		}
	})
}
