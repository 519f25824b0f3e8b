package transport_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // a decompressor that the program links
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/transport"
)

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
func TestCostOfDecompression(t *testing.T) {
	race.SkipCost(t)
	const limit = 128 << 20
	const size = 1 << 30
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
	peak := heapsize.While(func() {
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

// Polls whose small bodies become millions of entries are refused within bounds of memory, and the
// end of a stream does not wait for what is made of one.
//
// spec: H-5
func TestCostOfBodies(t *testing.T) {
	race.SkipCost(t)
	const size, most = 41 << 20, 256 << 20
	for _, tt := range []struct {
		name, head, piece, tail string
		times                   int
		want                    string
	}{
		{"entries", `{"resources":[`, "{},", "{}]}", size / 3, "too many for a response"},
		{"within an entry", `{"resources":[{"@type":"` + clusterURL + `","name":"a","x":[`, "{},", "{}]}]}", size / 3, ""},
		{"beside the entries", `{"resource_errors":[`, "{},", "{}]}", size / 3, "the limit of"},
		{"that cannot be read", `{"resources":[`, `{"@type":7},`, "{}]}", 200_000, "more than 10000 resources cannot be read"},
		{"as allowed", `{"resources":[`, `{"@type":"` + clusterURL + `"},`, `{}]}`, 250_000, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				io.WriteString(z, tt.head)
				chunk := strings.Repeat(tt.piece, 1000)
				for range tt.times / 1000 {
					io.WriteString(z, chunk)
				}
				io.WriteString(z, tt.tail)
				z.Close()
			}))
			defer srv.Close()
			server := polled(srv.Listener.Addr().String())
			server.REST().RequestTimeout = time.Minute
			conn, err := transport.NewREST(transport.RESTConfig{}).Build(server)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			request, err := proto.Marshal(&discoveryv3.DiscoveryRequest{TypeUrl: clusterURL})
			if err != nil {
				t.Fatal(err)
			}
			for _, cut := range []bool{false, true} {
				stream, err := conn.Open(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				if err := stream.Send(request); err != nil {
					t.Fatal(err)
				}
				var took time.Duration
				peak := heapsize.While(func() {
					if cut {
						time.AfterFunc(300*time.Millisecond, stream.Close)
					}
					begin := time.Now()
					_, err = stream.Recv()
					took = time.Since(begin)
				})
				stream.Close()
				t.Logf("cut %v: %v, heap of %d MiB: %.200v", cut, took, peak>>20, err)
				switch {
				case cut && took > 2*time.Second+300*time.Millisecond:
					t.Errorf("the end of the stream takes %v", took)
				case !cut && (err == nil) != (tt.want == "") || !cut && err != nil && !strings.Contains(err.Error(), tt.want):
					t.Errorf("error %v, want %q", err, tt.want)
				case peak > most:
					t.Errorf("the heap grew to %d MiB", peak>>20)
				}
			}
		})
	}
}

// Messages of several streams of a connection that are not finished are bounded together, so that a
// server with a stream for each type does not have as many in memory. One of the largest size is no
// fault, nor are smaller ones.
//
// spec: H-5
func TestUnfinishedMessages(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for _, tt := range []struct {
		streams, most int
		want          string
	}{
		{1, size, ""},
		{3, 2 * size, ""},
		{2, size, "unfinished messages of several streams have more than 1572864 bytes, one and a half times GRPCConfig.MaxReceiveSize"},
	} {
		t.Run(fmt.Sprint(tt.streams), func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup // those that have begun their messages
			all.Add(tt.streams)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/grpc")
				w.Write(binary.BigEndian.AppendUint32([]byte{0}, size))
				w.Write(make([]byte, size-1))
				w.(http.Flusher).Flush()
				all.Done()
				all.Wait()
				w.Write(make([]byte, 1))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}))
			srv.Config.Protocols = new(http.Protocols)
			srv.Config.Protocols.SetUnencryptedHTTP2(true)
			srv.Start()
			t.Cleanup(srv.CloseClientConnections)
			conn, err := transport.NewGRPC(transport.GRPCConfig{MaxReceiveSize: tt.most}).Build(bootstrap.ManagementServer{
				URI: srv.Listener.Addr().String(), ChannelCreds: bootstrap.ChannelCreds{Type: "insecure"},
			})
			if err != nil {
				t.Fatal(err)
			}
			ends := make(chan error)
			for range tt.streams {
				stream, err := conn.Open(t.Context(), transport.MethodADS)
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					_, err := stream.Recv()
					ends <- err
				}()
			}
			for range tt.streams {
				if err := <-ends; (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%d streams: %v, want %q", tt.streams, err, tt.want)
				}
			}
			conn.Close()
		})
	}
}

// Servers that are silent in the midst of large messages do not keep others from sending theirs.
//
// spec: H-5
func TestSilentWithinLargeMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("long: silence of ten seconds")
	}
	const size = 128 << 20
	serve := func(sent int) string {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Write(binary.BigEndian.AppendUint32([]byte{0}, size))
			w.Write(make([]byte, sent))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}))
		srv.Config.Protocols = new(http.Protocols)
		srv.Config.Protocols.SetUnencryptedHTTP2(true)
		srv.Start()
		t.Cleanup(srv.CloseClientConnections)
		return srv.Listener.Addr().String()
	}
	recv := func(address string) <-chan error {
		c := build(t, transport.GRPCConfig{}, bootstrap.ManagementServer{URI: address, ChannelCreds: bootstrap.Insecure()})
		s, err := c.Open(t.Context(), transport.MethodADS)
		if err != nil {
			t.Fatal(err)
		}
		end := make(chan error, 1)
		go func() {
			frame, err := s.Recv()
			frame.Free()
			end <- err
		}()
		return end
	}
	silent := []<-chan error{recv(serve(9 << 20)), recv(serve(9 << 20))}
	time.Sleep(time.Second) // they have the budget
	begin := time.Now()
	if err := <-recv(serve(size)); err != nil {
		t.Errorf("a whole message: %v", err)
	}
	t.Logf("a message waited %v", time.Since(begin))
	for _, end := range silent {
		select {
		case err := <-end:
			if err == nil || !strings.Contains(err.Error(), "while other messages waited for their turn") {
				t.Errorf("a silent server ends with %v", err)
			}
		case <-time.After(time.Second):
			t.Log("one silent server goes on")
		}
	}
}
