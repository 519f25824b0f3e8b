package transport_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/transport"
)

// serveGzip is a server that sends messages, compressed already, on each stream.
func serveGzip(t *testing.T, messages ...[]byte) bootstrap.ManagementServer {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Encoding", "gzip")
		for _, message := range messages {
			w.Write(append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(message))), message...))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.CloseClientConnections)
	return bootstrap.ManagementServer{URI: srv.Listener.Addr().String(), ChannelCreds: bootstrap.Insecure()}
}

// compressed is content in gzip.
func compressed(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Messages in gzip come as they were before, with whatever is left of one in the next.
func TestDecompression(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	var contents, messages [][]byte
	for _, size := range []int{0, 1, 100 << 10, 8<<20 - 1, 8 << 20, 8<<20 + 1, 20 << 20} {
		content := make([]byte, size)
		rnd.Read(content[:size/2]) // which makes it large on the wire too
		contents, messages = append(contents, content), append(messages, compressed(t, content))
	}
	s, err := build(t, transport.GRPCConfig{MaxReceiveSize: 20 << 20}, serveGzip(t, append(messages, []byte("\x1f\x8bno"))...)).Open(t.Context(), "/s/m")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range contents {
		frame, err := s.Recv()
		if err != nil {
			t.Fatalf("%d bytes: %v", len(want), err)
		}
		if got := bytes.Join(frame.Parts, nil); !bytes.Equal(got, want) {
			t.Errorf("%d bytes came, and not the %d that were compressed", len(got), len(want))
		}
		frame.Free()
	}
	if _, err := s.Recv(); status.Code(err) != codes.Internal {
		t.Errorf("what is not gzip ends the stream with %v", err)
	}
}

// Messages of some kilobytes that become large come one after another, on several streams as from several
// servers.
//
// spec: H-5 H-8
func TestCostOfDecompressedStreams(t *testing.T) {
	race.SkipCost(t)
	const size, streams = 100 << 20, 8
	message := zeros(t, size)
	for _, servers := range []int{1, streams} {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			var conns []transport.Conn
			for range servers {
				conns = append(conns, build(t, transport.GRPCConfig{}, serveGzip(t, message)))
			}
			ends := make(chan error, streams)
			peak := heapsize.While(func() {
				for i := range streams {
					s, err := conns[i%servers].Open(t.Context(), "/s/m")
					if err != nil {
						t.Fatal(err)
					}
					go func() {
						frame, err := s.Recv()
						if n := len(bytes.Join(frame.Parts[:min(1, len(frame.Parts))], nil)); err == nil && n == 0 {
							err = io.ErrUnexpectedEOF
						}
						frame.Free()
						ends <- err
					}()
				}
				for range streams {
					if err := <-ends; err != nil {
						t.Error(err)
					}
				}
			})
			t.Logf("a heap of %d MiB", peak>>20)
			if peak > 512<<20 {
				t.Errorf("the heap grew to %d MiB", peak>>20)
			}
		})
	}
}
