package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// What has a time to live is loaded until that is over, and not later.
//
// spec: LKG-6
func TestStoreExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dir := testutil.NewServer(), t.TempDir()
		run(t, srv, dir, func(r *rig) {
			r.watch("a")
			short := testutil.Wrapped("a", "1", cluster("a", "1"))
			short.Ttl = durationpb.New(time.Minute)
			r.send(r.accept(), testutil.SotW(cds.Type.TypeURL(), "1", "n1", short))
			time.Sleep(10 * time.Second)
		})
		srv.SetRefuse(true)
		for _, want := range []string{"updated a 1 stale", "failed a connection"} {
			run(t, srv, dir, func(r *rig) {
				_, rec := r.watch("a")
				time.Sleep(2 * time.Second)
				synctest.Wait()
				same(t, "heard", stale(rec.all())[0], want)
			})
			time.Sleep(time.Minute)
		}
	})
}

// A clock that is set back prolongs no life: what was left of it when the server last confirmed it is left.
//
// spec: LKG-6
func TestStoreExpiresByClockSetBack(t *testing.T) {
	dir, short := t.TempDir(), testutil.Wrapped("a", "1", cluster("a", "1"))
	short.Ttl = durationpb.New(time.Minute)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(365 * 24 * time.Hour) // the clock of the next bubble is as far behind
		run(t, testutil.NewServer(), dir, func(r *rig) {
			r.watch("a")
			st := r.accept()
			for nonce := range 60 { // an hour of heartbeats
				r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", fmt.Sprint(nonce), short))
				time.Sleep(time.Minute - time.Second)
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		srv.SetRefuse(true)
		run(t, srv, dir, func(r *rig) {
			_, rec := r.watch("a")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if at := r.c.Dump()[0].Updated; time.Since(at) < 0 {
				t.Errorf("it was accepted at %v, which is still to come", at)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			heard := stale(rec.all()) // a fourth word, "failed a connection", comes with the next attempt, at a random time
			same(t, "heard", heard[:min(3, len(heard))], []string{"updated a 1 stale", "ambient error a connection stale", "does not exist a ttl"})
		})
	})
}

// everlasting is a store that has something for longer than nanoseconds can count.
type everlasting struct{ mixed }

func (s *everlasting) Load(at client.StoreSection, names []string, yield func(client.StoredResource)) error {
	return s.mixed.Load(at, names, func(r client.StoredResource) {
		r.Expires = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		yield(r)
	})
}

// A time to live that a store says may be of any length.
//
// spec: LKG-6
func TestStoreExpiresLate(t *testing.T) {
	s := &everlasting{mixed{brittle: brittle{fail: func() error { return nil }}, fault: func(*discoveryv3.Resource) {}}}
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		_, rec := r.watch("a")
		time.Sleep(time.Hour)
		synctest.Wait()
		same(t, "heard", stale(rec.all()), []string{"updated a 1 stale", "ambient error a connection stale"})
	}, func(config *client.Config) {
		config.Store, s.server = s, config.Bootstrap.Servers[0].URI
	})
}
