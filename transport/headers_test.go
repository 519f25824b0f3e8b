package transport_test

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport"
)

// Headers are bounded: as long as a stream lives, many small ones take several times their size.
//
// spec: H-9
func TestManyHeaders(t *testing.T) {
	for fields, want := range map[int]string{
		1_000:   "as it was sent",
		32_000:  "the server's headers or trailers have more than 1048576 bytes",
		100_000: "PROTOCOL_ERROR", // where frames follow the one with which it is too much
	} {
		t.Run(fmt.Sprint(fields), func(t *testing.T) {
			var block bytes.Buffer
			enc := hpack.NewEncoder(&block)
			for name, value := range map[string]string{"grpc-status": "13", "grpc-message": "as it was sent"} {
				if err := enc.WriteField(hpack.HeaderField{Name: name, Value: value}); err != nil {
					t.Fatal(err)
				}
			}
			for range fields {
				if err := enc.WriteField(hpack.HeaderField{Name: "x"}); err != nil {
					t.Fatal(err)
				}
			}
			l := listen(t, "127.0.0.1:0")
			serveFrames(t, l, func(w *bufio.Writer, f *http2.Framer, win *window) {
				pieces := slices.Collect(slices.Chunk(block.Bytes(), 16<<10))
				for i, piece := range pieces {
					last := i == len(pieces)-1
					if i == 0 {
						_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: piece, EndStream: true, EndHeaders: last})
					} else {
						_ = f.WriteContinuation(1, last, piece)
					}
				}
				_ = w.Flush()
				win.follow(f) // until the client closes the connection
			})
			c := build(t, transport.GRPCConfig{}, bootstrap.ManagementServer{URI: l.Addr().String(), ChannelCreds: bootstrap.Insecure()})
			s, err := c.Open(t.Context(), "/s/m")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recv(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the end of the stream is %v, want %q", err, want)
			}
		})
	}
}
