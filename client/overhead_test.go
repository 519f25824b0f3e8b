package client_test

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// monotone is a message of one piece, over and over, behind a beginning.
type monotone struct {
	head, piece string
	times       int
}

func (m monotone) size() int { return len(m.head) + len(m.piece)*m.times }

// serveFrame answers each stream with one message that is made while it is written, and holds
// it open.
func serveFrame(t *testing.T, m monotone) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Write(binary.BigEndian.AppendUint32([]byte{0}, uint32(m.size())))
		w.Write([]byte(m.head))
		chunk := make([]byte, 0, 64<<10)
		for i := 0; i < m.times; i++ {
			if chunk = append(chunk, m.piece...); len(chunk) > 60<<10 || i == m.times-1 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
				chunk = chunk[:0]
			}
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.Listener.Addr().String()
}

// Frames of nothing but entries are refused or taken within bounds of memory, and Close does
// not wait for what is made of them.
//
// spec: H-5
func TestCostOfEmptyEntries(t *testing.T) {
	race.SkipCost(t)
	const url = "\x22\x33type.googleapis.com/envoy.config.cluster.v3.Cluster"
	const most = 256 << 20
	for name, m := range map[string]monotone{
		"resources, 64 MiB":     {url, "\x12\x00", 32 << 20},
		"resources, as allowed": {url, "\x12\x00", 200_000},
		"errors, 64 MiB":        {url, "\x3a\x00", 32 << 20},
		"errors, as allowed":    {url, "\x3a\x00", 600_000},
	} {
		t.Run(name, func(t *testing.T) {
			boot, err := bootstrap.Server(serveFrame(t, m))
			must(t, err)
			answered := make(chan struct{}, 100)
			answer := func(...any) {
				select {
				case answered <- struct{}{}:
				default:
				}
			}
			c, err := client.New(client.Config{Bootstrap: boot, Trace: &client.Trace{
				ACK: func(client.AnswerInfo) { answer() }, NACK: func(client.AnswerInfo) { answer() },
				StreamDown: func(client.StreamInfo, error) { answer() },
			}})
			must(t, err)
			peak := heapsize.While(func() {
				_, err = c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) {})
				must(t, err)
				select {
				case <-answered:
				case <-time.After(time.Minute):
					t.Error("there is no answer")
				}
				begin := time.Now()
				c.Close()
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("Close takes %v", took)
				}
			})
			t.Logf("%d KiB, heap of %d MiB", m.size()>>10, peak>>20)
			if peak > most {
				t.Errorf("the heap grew to %d MiB", peak>>20)
			}
		})
	}
}
