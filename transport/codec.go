package transport

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// rawCodec carries messages as they are: parts of one out, *Frame in.
type rawCodec struct{}

// Marshal lends the message to gRPC, which frees nothing: see the contract of Send.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	msg, ok := v.([][]byte)
	if !ok {
		return nil, fmt.Errorf("raw codec: cannot send a %T", v)
	}
	data := make(mem.BufferSlice, len(msg))
	for i, part := range msg {
		data[i] = mem.SliceBuffer(part)
	}
	return data, nil
}

// Unmarshal makes one piece of the message, of which gRPC has one for each 16 KiB that
// came, in a buffer of gRPC's pool.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*Frame)
	if !ok {
		return fmt.Errorf("raw codec: cannot receive into a %T", v)
	}
	f.buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
	f.Bytes = f.buffer.ReadOnlyData()
	return nil
}

// Name is empty so that the content type is plain "application/grpc", as with the codec
// that gRPC uses by default, and not one with a subtype.
func (rawCodec) Name() string { return "" }
