package main

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	methodSotW  = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	methodDelta = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
)

// Fields of requests.
const (
	fieldVersion    = 1 // state of the world
	fieldNames      = 3 // both variants
	fieldTypeSotW   = 4
	fieldNonceSotW  = 5
	fieldTypeDelta  = 2
	fieldGone       = 4
	fieldInitial    = 5
	fieldNonceDelta = 6
)

func openStream(cc *grpc.ClientConn, method string, codec encoding.CodecV2) (grpc.ClientStream, error) {
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	return cc.NewStream(context.Background(), desc, method, grpc.ForceCodecV2(codec), grpc.WaitForReady(true))
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// appendNames appends names as entries of a field.
func appendNames(b []byte, field protowire.Number, names ...string) []byte {
	for _, n := range names {
		b = appendString(b, field, n)
	}
	return b
}
