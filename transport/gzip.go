package transport

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// packed leaves messages in gzip as they are: gRPC would decompress them before they have their share of
// the budget. It is a decompressor of gRPC.
type packed struct{}

// Type is the encoding.
func (packed) Type() string { return "gzip" }

// Do reads all, for which it makes room at once.
func (packed) Do(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	if sized, ok := r.(interface{ Remaining() int }); ok {
		b.Grow(sized.Remaining() + bytes.MinRead)
	}
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

// isPacked says that packed has left a message as it was: none of protobuf begins so.
func (f *Frame) isPacked() bool {
	return len(f.Parts) == 1 && bytes.HasPrefix(f.Parts[0], []byte{0x1f, 0x8b})
}

// unpack decompresses a message. One that becomes large waits for its share of the budget.
func (s *stream) unpack(f *Frame) error {
	ctx := s.grpc.Context()
	z, err := gzip.NewReader(patient{bytes.NewReader(f.Parts[0]), ctx})
	f.buffers.Free()
	f.buffers = nil
	small := min(smallMessage, s.limit+1)
	if err == nil {
		err = f.fill(z, small)
	}
	// H-5: as many as the budget allows.
	if err == nil && f.buffers.Len() == small && small <= s.limit {
		if err := s.share(ctx, f, s.limit); err != nil {
			return err
		}
		err = f.fill(z, s.limit+1-small)
	}
	switch {
	case err != nil:
		return cmp.Or(context.Cause(ctx), status.Errorf(codes.Internal, "a message cannot be decompressed: %v", err))
	// H-8: after decompression.
	case f.buffers.Len() > s.limit:
		return tooLarge(s.limit, "GRPCConfig", "it was compressed")
	}
	return nil
}

// fill appends to a message what there is, and no more than most.
func (f *Frame) fill(r io.Reader, most int) error {
	more, err := mem.ReadAll(io.LimitReader(r, int64(most)), mem.DefaultBufferPool())
	f.setBuffers(append(f.buffers, more...))
	return err
}
