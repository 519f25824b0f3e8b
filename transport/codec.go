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

// Unmarshal keeps the buffers that gRPC received the message in, one for each 16 KiB.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*Frame)
	if !ok {
		return fmt.Errorf("raw codec: cannot receive into a %T", v)
	}
	data.Ref()
	f.setBuffers(data)
	return nil
}

// setBuffers makes the frame's parts.
func (f *Frame) setBuffers(data mem.BufferSlice) {
	f.buffers = data
	f.Parts = make([][]byte, len(data))
	for i, b := range data {
		f.Parts[i] = b.ReadOnlyData()
	}
}

// Name is empty so that the content type is plain "application/grpc", as with the codec
// that gRPC uses by default, and not one with a subtype.
func (rawCodec) Name() string { return "" }
