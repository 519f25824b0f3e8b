package transport

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// rawCodec carries messages as they are: []byte out, *[]byte in.
type rawCodec struct{}

// Marshal lends the message to gRPC, which frees nothing: see the contract of Send.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	msg, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("raw codec: cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(msg)}, nil
}

// Unmarshal copies: gRPC reuses the buffers once it returns, of which a message has one
// for each 16 KiB frame.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	msg, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("raw codec: cannot receive into a %T", v)
	}
	*msg = data.Materialize()
	return nil
}

// Name is empty so that the content type is plain "application/grpc", as with the codec
// that gRPC uses by default, and not one with a subtype.
func (rawCodec) Name() string { return "" }
