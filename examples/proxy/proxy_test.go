package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
)

const (
	workers  = 6
	pushing  = 5 * time.Second // ten pushes a second
	deadTime = 1500 * time.Millisecond
)

// requests is how many are sent while pushes come: fewer where the race detector makes each take longer
// than its share of that time.
var requests = func() int64 {
	if race.Enabled {
		return 4_000
	}
	return 20_000
}()

// A management server pushes ten times a second: other weights, a cluster in another's place,
// a backend in another's place, an invalid cluster; and is killed for a while. No request fails,
// and none is retried.
func TestNoRequestFails(t *testing.T) {
	if testing.Short() {
		t.Skip("four times five seconds of load")
	}
	for name, variant := range map[string]client.Variant{"state of the world": client.VariantSotW, "delta": client.VariantDelta} {
		for _, ads := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ADS mode %v", name, ads), func(t *testing.T) {
				// In its ADS mode the cache answers names in state of the world only if the
				// client asks for all that there are, so there is nothing to find on demand.
				w := newWorld(t, ads, !ads || variant == client.VariantDelta)
				p, err := newProxy(t.Context(), w.client(variant), nil, "proxy")
				if err != nil {
					t.Fatal(err)
				}
				w.next()
				if err := p.view.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				if failed, example := w.drive(p); failed > 0 {
					t.Errorf("%d requests failed, the first with %s", failed, example)
				}
				t.Logf("%d pushes", w.push)
			})
		}
	}
}

// The same program on single watches fails requests, so the test above can fail.
func TestSingleWatchesFailRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("five seconds of load")
	}
	w := newWorld(t, false, false)
	p := newSingles(t, w.client(client.VariantSotW))
	w.next()
	for p.config.Load().err != nil {
		time.Sleep(time.Millisecond)
	}
	failed, _ := w.drive(p)
	if failed == 0 {
		t.Error("no request failed")
	}
	t.Logf("%d of %d requests failed", failed, requests)
}

func (w *world) client(variant client.Variant) *client.Client {
	boot, err := bootstrap.Server(w.network.Addr())
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot, Variant: variant})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

// drive sends requests through a proxy while the management server pushes, and counts those that
// fail.
func (w *world) drive(p *proxy) (failed int64, example string) {
	front := httptest.NewServer(p)
	defer front.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.change()
	}()
	var sent, bad atomic.Int64
	var first sync.Once
	var work sync.WaitGroup
	for i := range workers {
		work.Go(func() {
			c := &http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			pace := time.NewTicker(workers * pushing / time.Duration(requests)) // all of them take as long as the pushes
			defer pace.Stop()
			for n := sent.Add(1); n <= requests || !isClosed(over); n = sent.Add(1) {
				<-pace.C
				w.running[i].Store(n)
				err := w.request(c, front.URL, n)
				w.running[i].Store(0)
				if err != nil {
					bad.Add(1)
					first.Do(func() { example = err.Error() })
				}
			}
		})
	}
	work.Wait()
	return bad.Load(), example
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// change makes ten pushes a second, whatever the client has acknowledged, and kills the management
// server once.
func (w *world) change() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for start, killed := time.Now(), false; time.Since(start) < pushing; <-tick.C {
		if !killed && time.Since(start) > pushing/3 {
			killed = true
			w.kill(deadTime)
		}
		w.next()
	}
}

// request sends one request; each tenth names its cluster, if there is one to find on demand.
func (w *world) request(c *http.Client, url string, n int64) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/", nil)
	if err != nil {
		return err
	}
	if w.onDemand && n%10 == 0 {
		r.URL.Path = "/demand"
		r.Header.Set("X-Cluster", "demanded")
	}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return nil
}
