package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
)

// The message of a server that ends a stream is cut, however long it is: each of many watches is
// told of it, and may keep the text.
//
// spec: H-9
func TestCostOfLongStatus(t *testing.T) {
	race.SkipCost(t)
	for _, size := range []int{1 << 10, 1 << 19} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				const watches = 50
				var recs []*record
				for i := range watches {
					_, rec := r.watch(fmt.Sprint("c", i))
					recs = append(recs, rec)
				}
				st := r.accept()
				before := heapsize.InUse()
				st.End(status.Error(codes.Internal, strings.Repeat("m", size)))
				time.Sleep(3 * time.Second)
				synctest.Wait()
				var texts []string
				for _, rec := range recs {
					err := rec.last().Err
					if status.Code(errors.Unwrap(err)) != codes.Internal || !strings.Contains(err.Error(), "mmm") {
						t.Fatalf("heard %.300v, want the server's status", err)
					}
					texts = append(texts, err.Error())
				}
				if n := len(texts[0]); n > 8<<10 || size <= 1<<10 && n < size {
					t.Errorf("the text has %d bytes", n)
				}
				// The server, in the same process, and the connection have copies.
				if grown := int64(heapsize.InUse()) - int64(before); grown > 4<<20+4*int64(size) {
					t.Errorf("the heap grew by %d KiB", grown>>10)
				}
				for _, s := range r.c.Dump() {
					if text := fmt.Sprint(s); len(text) > 32<<10 {
						t.Errorf("the state has %d bytes", len(text))
					}
				}
			})
		})
	}
}
