package client_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A first request over what a gRPC server takes by default is cut down until it is taken.
//
// spec: DELTA-1
func TestLargeInterest(t *testing.T) {
	for _, variant := range []client.Variant{client.Delta, client.StateOfTheWorld} {
		synctest.Test(t, func(t *testing.T) {
			const limit = 4 << 20
			srv := testutil.NewServer(testutil.GRPCOptions(grpc.MaxRecvMsgSize(limit)))
			r := newRig(t, srv, func(c *client.Config) { c.Variant = variant })
			srv.SetRefuse(true)
			var names []string
			var last *record
			for i := range 6 {
				names = append(names, string(rune('a'+i))+strings.Repeat("x", 1<<20))
				_, last = r.watchType(eds.Type, names[i])
			}
			synctest.Wait()
			srv.SetRefuse(false)
			time.Sleep(time.Minute)
			synctest.Wait()
			if variant == client.StateOfTheWorld {
				err := last.last().Err
				if err == nil || !strings.Contains(err.Error(), "state of the world cannot split it") {
					t.Errorf("the error is %.300v", err)
				}
				return
			}
			streams := srv.Streams()
			st := streams[len(streams)-1]
			if len(streams) != 2 {
				t.Errorf("%d streams, want 2", len(streams))
			}
			var got []string
			for _, req := range st.Requests() {
				if len(req.Raw) > limit {
					t.Errorf("a request of %d bytes", len(req.Raw))
				}
				got = append(got, req.Delta.ResourceNamesSubscribe...)
			}
			if !slices.Equal(got, names) {
				t.Errorf("%d names were asked for in %d requests, want %d", len(got), len(st.Requests()), len(names))
			}
			r.log.holds(t, "first requests are kept under")
		})
	}
}
