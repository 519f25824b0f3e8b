package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

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
			same(t, "heard", stale(rec.all()), []string{"updated a 1 stale", "ambient error a connection stale", "does not exist a ttl"})
		})
	})
}
