package transport_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // a decompressor that the program links
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport"
)

// peakOf runs f and returns how large the heap grew meanwhile, in bytes.
func peakOf(f func()) uint64 {
	runtime.GC()
	var peak atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-ended
	return peak.Load()
}

// zeros is so many bytes of zeros in gzip.
func zeros(t *testing.T, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.CopyN(w, zero{}, size); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zero struct{}

func (zero) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A message that decompresses to gigabytes is refused at the limit, which the error names with
// the field that raises it.
//
// spec: H-8
func TestReceiveLimitAfterDecompression(t *testing.T) {
	const size, limit = 1 << 30, 128 << 20
	message := zeros(t, size)
	frame := append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(message))), message...)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Encoding", "gzip")
		w.Write(frame)
		w.(http.Flusher).Flush()
		time.Sleep(time.Minute) // the client ends the stream before
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	defer srv.CloseClientConnections()
	conn, err := transport.NewGRPC(transport.GRPCConfig{}).Build(bootstrap.ManagementServer{
		URI: srv.Listener.Addr().String(), ChannelCreds: bootstrap.ChannelCreds{Type: "insecure"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var end error
	peak := peakOf(func() {
		stream, err := conn.Open(t.Context(), transport.MethodADS)
		if err != nil {
			t.Error(err)
			return
		}
		defer stream.Close()
		_, end = stream.Recv()
	})
	if text := fmt.Sprint(end); status.Code(end) != codes.ResourceExhausted || !strings.Contains(text, fmt.Sprint(limit)) || !strings.Contains(text, "GRPCConfig.MaxReceiveSize") {
		t.Errorf("the stream ends with %v", end)
	}
	t.Logf("%d KiB were refused with a heap of %d MiB", len(frame)>>10, peak>>20)
	if peak > 512<<20 {
		t.Errorf("the heap grew to %d MiB", peak>>20)
	}
}
