package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// count counts the lines of a log that hold a text.
func (l *logBuffer) count(text string) (n int) {
	for line := range strings.Lines(l.text()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

const (
	blocks  = "a handler does not return"
	returns = "a handler that took long has returned"
)

// A handler that blocks is reported after five seconds, once, with what waits for it; its
// return too.
// spec: U-3
func TestBlockedHandlerIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var gate gate
		gate.shut()
		_, err := r.c.Watch(context.Background(), cds.Type, "b", func(client.Event[any]) { gate.pass(nil) })
		must(t, err)
		for _, name := range []string{"a", "c", "d"} {
			r.watch(name)
		}
		st := r.accept()
		r.latest(st, "cds [a b c d]")
		r.clusters(st, "1", "n1", "a", "b", "c", "d")
		time.Sleep(5*time.Second - time.Millisecond)
		synctest.Wait()
		same(t, "lines after less than five seconds", r.log.count(blocks), 0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		same(t, "lines after five seconds", r.log.count(blocks), 1)
		for _, part := range []string{"level=WARN", "type=" + cds.Type.TypeURL(), "name=b", "for=5s", "waiting=2"} {
			r.log.holds(t, part)
		}
		time.Sleep(time.Minute)
		same(t, "blocked", r.c.Gauges().Blocked, []client.BlockedHandler{{Type: cds.Type.TypeURL(), Name: "b", For: 65 * time.Second, Waiting: 2}})
		same(t, "lines after a minute", []int{r.log.count(blocks), r.log.count(returns)}, []int{1, 0})
		gate.open()
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, "lines after the return", []int{r.log.count(blocks), r.log.count(returns)}, []int{1, 1})
		if bs := r.c.Gauges().Blocked; bs != nil {
			t.Errorf("blocked in the end: %v", bs)
		}
		gate.shut()
		r.clusters(st, "2", "n2", "a", "b")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		same(t, "lines of another time", r.log.count(blocks), 2)
		gate.open()
	})
}

// Who waits in vain is told of the handler that others wait for.
// spec: U-3 U-4
func TestBlockedHandlerInErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var gate gate
		gate.shut()
		set, err := r.c.NewSet(context.Background(), cds.Type, func(client.Batch[any]) { gate.pass(nil) })
		must(t, err)
		must(t, set.Add("a"))
		late, _ := r.watchType(eds.Type, "e")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		get := func(ctx context.Context) error {
			_, err := r.c.Get(ctx, eds.Type, "f")
			return err
		}
		for _, wait := range []func(context.Context) error{r.c.Ready, late.Ready, set.Ready, get} {
			err := within(3*time.Second, wait)
			b, ok := errors.AsType[client.BlockedHandler](err)
			if !ok || b.Type != cds.Type.TypeURL() || b.Name != "a" || b.For < 2*time.Second || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it is %v", err)
			}
			if !strings.Contains(err.Error(), "has not returned for") {
				t.Errorf("the text: %v", err)
			}
		}
		gate.open()
	})
}

// Handlers that are quick are not reported however many there are, nor one that is slow but
// returns in time; hooks are; and the time is configured.
// spec: U-3
func TestBusyHandlers(t *testing.T) {
	var gate gate
	trace := func(c *client.Config) {
		c.HandlerTimeout = time.Second
		c.Trace = &client.Trace{ACK: func(client.AnswerInfo) { gate.pass(nil) }}
	}
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) { time.Sleep(300 * time.Millisecond) })
		must(t, err)
		_, err = r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { time.Sleep(300 * time.Millisecond) })
		must(t, err)
		st := r.accept()
		names := manyNames(100)
		for range 100 {
			r.clusters(st, "1", "n1", append(names, "a")...)
			r.clusters(st, "2", "n2", append(names, "a")...)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if text := r.log.text(); strings.Contains(text, "does not return") {
			t.Errorf("reported: %s", text)
		}
		gate.shut()
		r.clusters(st, "3", "n3", "a")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		same(t, "lines of a hook", r.log.count("Trace or Metrics, does not return"), 1)
		same(t, "blocked", len(r.c.Gauges().Blocked), 1)
		gate.open()
	}, trace)
	inBubble(t, func(t *testing.T, r *rig) {
		gate.shut()
		r.watch("a")
		r.clusters(r.accept(), "1", "n1", "a")
		time.Sleep(time.Hour)
		same(t, "lines where it is switched off", r.log.count("does not return"), 0)
		gate.open()
	}, trace, func(c *client.Config) { c.HandlerTimeout = -1 })
}

// What is held is decoded for a watch that comes late where its handler is called. A decoder that blocks there holds up the
// handlers of the source, is reported as a handler that blocks, and does not hold up Stop.
//
// spec: WATCH-3 U-3
func TestLateDecoderBlocks(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		hold := make(chan struct{})
		close(hold)
		kind := resource.Custom(cds.Type.TypeURL(), resource.Options{NameField: 1}, func(resource.Source, []byte) (string, error) {
			<-hold
			return "good", nil
		})
		_, rec := r.watchType(kind, "a")
		st := r.accept()
		r.request(st, "cds [a]")
		r.send(st, testutil.SotW(kind.TypeURL(), "1", "1", cluster("a", "1")))
		synctest.Wait()
		rec.heard(t, "updated a 1")
		hold = make(chan struct{})
		told := 0
		w, err := r.c.Watch(context.Background(), kind, "a", func(client.Event[any]) { told++ })
		must(t, err)
		time.Sleep(time.Minute)
		blocked := r.c.Gauges().Blocked
		if len(blocked) != 1 || blocked[0].Name != "a" {
			t.Errorf("blocked: %+v, want the watch of a", blocked)
		}
		w.Stop()
		close(hold)
		synctest.Wait()
		if told != 0 {
			t.Error("the handler was called after Stop")
		}
		if blocked = r.c.Gauges().Blocked; len(blocked) != 0 {
			t.Errorf("blocked after the decoder has returned: %+v", blocked)
		}
	})
}
