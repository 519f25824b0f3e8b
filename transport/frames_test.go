package transport_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// grpcHead is what begins an answer of gRPC: the block of ":status: 200", "content-type: application/grpc".
var grpcHead = slices.Concat([]byte{0x88, 0x0f, 0x10, 16}, []byte("application/grpc"))

// opened reads frames up to the first stream and begins to answer it.
func opened(f *http2.Framer, win *window) bool {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return false
		}
		win.see(frame)
		if h, ok := frame.(*http2.HeadersFrame); ok {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: h.StreamID, BlockFragment: grpcHead, EndHeaders: true}) == nil
		}
	}
}

// serveFrames gives each connection to play, after SETTINGS that let a message of any size come.
func serveFrames(t *testing.T, l net.Listener, play func(w *bufio.Writer, f *http2.Framer, win *window)) {
	var work sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				if _, err := io.CopyN(io.Discard, c, int64(len(http2.ClientPreface))); err != nil {
					return
				}
				w := bufio.NewWriterSize(c, 64<<10)
				f := http2.NewFramer(w, c)
				f.AllowIllegalWrites = true
				win := &window{left: [2]int64{65535, 65535}, size: 65535}
				win.more.L = &win.mu
				if f.WriteSettings() == nil && w.Flush() == nil && opened(f, win) && w.Flush() == nil {
					play(w, f, win)
				}
			})
		}
	})
}

// window is what a server may send on its first stream, as the client's frames have it.
type window struct {
	mu     sync.Mutex
	more   sync.Cond
	left   [2]int64 // of the connection, of the stream
	size   int64    // at first, of a stream
	closed bool
}

// follow keeps the window up to date until the connection ends.
func (w *window) follow(f *http2.Framer) {
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			w.mu.Lock()
			w.closed = true
			w.mu.Unlock()
			w.more.Broadcast()
			return
		}
		w.see(frame)
	}
}

// see accounts for a frame of the client.
func (w *window) see(frame http2.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch frame := frame.(type) {
	case *http2.WindowUpdateFrame:
		w.left[min(frame.StreamID, 1)] += int64(frame.Increment)
	case *http2.SettingsFrame:
		if v, ok := frame.Value(http2.SettingInitialWindowSize); ok {
			w.left[1] += int64(v) - w.size
			w.size = int64(v)
		}
	}
	w.more.Broadcast()
}

// take waits until n bytes may be sent; false at the end of the connection.
func (w *window) take(n int64, flush func() error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for min(w.left[0], w.left[1]) < n && !w.closed {
		w.mu.Unlock()
		err := flush()
		w.mu.Lock()
		if err == nil && min(w.left[0], w.left[1]) < n && !w.closed {
			w.more.Wait()
		}
	}
	w.left[0] -= n
	w.left[1] -= n
	return !w.closed
}

// sendInFrames sends messages of size bytes in frames with so much content and padding.
func sendInFrames(messages, size, content int, pad []byte) func(*bufio.Writer, *http2.Framer, *window) {
	return func(w *bufio.Writer, f *http2.Framer, win *window) {
		over := make(chan struct{})
		go func() { win.follow(f); close(over) }()
		defer func() { <-over }()
		for range messages {
			message := binary.BigEndian.AppendUint32([]byte{0}, uint32(size))
			message = append(message, make([]byte, size)...)
			for piece := range slices.Chunk(message, content) {
				n := int64(len(piece))
				if pad != nil {
					n += int64(len(pad)) + 1
				}
				if !win.take(n, w.Flush) || f.WriteDataPadded(1, false, piece, pad) != nil {
					return
				}
			}
		}
		_ = w.Flush()
	}
}

// A message in frames of a few bytes takes many times its size, since gRPC keeps each frame in memory
// of its own. It ends its connection; one in frames as servers send them does not.
//
// spec: H-5
func TestCostOfSmallFrames(t *testing.T) {
	race.SkipCost(t)
	for name, test := range map[string]struct {
		messages, size, content int
		pad                     []byte
		refused                 bool
	}{
		"a byte":           {1, 1 << 20, 1, nil, true},
		"a byte, padded":   {1, 1 << 20, 1, make([]byte, 255), true},
		"uneven":           {1, 100 << 20, 4097, nil, true},
		"even":             {1, 100 << 20, 4096, nil, false},
		"large":            {1, 100 << 20, 16384, nil, false},
		"many messages":    {100_000, 16, 7, nil, false},
		"many in a frame":  {1, 40 << 20, 16000, nil, false},
		"small and padded": {20_000, 16, 32, make([]byte, 200), false},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && test.size > 1<<20 {
				t.Skip("long: large messages")
			}
			l := listen(t, "127.0.0.1:0")
			serveFrames(t, l, sendInFrames(test.messages, test.size, test.content, test.pad))
			c := build(t, transport.GRPCConfig{}, bootstrap.ManagementServer{URI: l.Addr().String(), ChannelCreds: bootstrap.Insecure()})
			s, err := c.Open(t.Context(), "/s/m")
			if err != nil {
				t.Fatal(err)
			}
			for i := range test.messages {
				frame, err := s.Recv()
				if test.refused {
					if err == nil || !strings.Contains(err.Error(), "frames") {
						t.Errorf("the end of the stream is %v, want what the frames take", err)
					}
					break
				}
				if err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				frame.Free()
			}
		})
	}
}

// small has an end of a connection keep little that is on its way, so that it is soon full.
func small(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	tcp := c.(*net.TCPConn)
	return c, errors.Join(tcp.SetReadBuffer(16<<10), tcp.SetWriteBuffer(16<<10))
}

type smallListener struct{ net.Listener }

func (l smallListener) Accept() (net.Conn, error) { return small(l.Listener.Accept()) }

// A server that does not read, so that nothing can be sent to it, does not hold up Close.
//
// spec: H-5
func TestCloseWhereNothingIsRead(t *testing.T) {
	t.Parallel()
	ca, err := testutil.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Issue(testutil.CertOptions{DNS: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := cert.TLS()
	if err != nil {
		t.Fatal(err)
	}
	roots := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(roots, ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, creds := range map[string]bootstrap.ChannelCreds{
		"plaintext": bootstrap.Insecure(),
		"TLS":       {Type: "tls", TLS: &bootstrap.TLS{CACertificateFile: roots}},
	} {
		t.Run(name, func(t *testing.T) {
			if creds.TLS != nil && testing.Short() {
				t.Skip("long: Close waits for seconds until TLS gives up too")
			}
			t.Parallel()
			var l net.Listener = smallListener{listen(t, "127.0.0.1:0")}
			if creds.TLS != nil {
				l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
			}
			var pings atomic.Int64
			serveFrames(t, l, func(w *bufio.Writer, f *http2.Framer, _ *window) {
				// The client answers them until it cannot, and then reads no more either.
				for f.WritePing(false, [8]byte{}) == nil {
					pings.Add(1)
				}
			})
			dial := grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				return small(new(net.Dialer).DialContext(ctx, "tcp", addr))
			})
			c := build(t, transport.GRPCConfig{DialOptions: []grpc.DialOption{dial}}, bootstrap.ManagementServer{URI: l.Addr().String(), ChannelCreds: creds})
			if _, err := c.Open(t.Context(), "/s/m"); err != nil {
				t.Fatal(err)
			}
			for before := int64(-1); before != pings.Load(); time.Sleep(300 * time.Millisecond) {
				before = pings.Load()
			}
			start := time.Now()
			c.Close()
			// Else it would wait for as long as the server does not read. A machine may be busy.
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("Close took %v", d)
			}
		})
	}
}
