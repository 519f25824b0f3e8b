package main

import (
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// bytesCodec sends bytes and receives a buffer, which the receiver frees.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (bytesCodec) Unmarshal(d mem.BufferSlice, v any) error {
	*v.(*mem.Buffer) = d.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}

// diff unmarshals what differs from the last response.
type diff struct {
	e     *kit.Env
	cc    *grpc.ClientConn
	names []byte
	last  [][]byte // entries of the last response, in its order
}

func (d *diff) Close()                  { _ = d.cc.Close() }
func (d *diff) Watch(string, int) error { return errors.ErrUnsupported }
func (d *diff) Cancel(string) error     { return errors.ErrUnsupported }

func (d *diff) Subscribe(names []string) error {
	d.names = appendNames(d.names, fieldNames, names...)
	return d.connect()
}

func (d *diff) connect() error {
	ss, err := openStream(d.cc, methodSotW, bytesCodec{})
	if err != nil {
		return err
	}
	if err := ss.SendMsg(d.request(nil, nil)); err != nil {
		return err
	}
	go d.receive(ss)
	return nil
}

func (d *diff) receive(ss grpc.ClientStream) {
	for {
		var b mem.Buffer
		if err := ss.RecvMsg(&b); err != nil {
			reconnect(d.e, d.connect)
			return
		}
		request := d.response(b.ReadOnlyData())
		b.Free()
		_ = ss.SendMsg(request) // RecvMsg says why not
	}
}

func (d *diff) request(version, nonce []byte) []byte {
	b := make([]byte, 0, len(d.names)+256)
	if len(version) > 0 {
		b = appendBytes(b, fieldVersion, version)
		b = appendBytes(b, fieldNonceSotW, nonce)
	}
	b = appendString(b, fieldTypeSotW, d.e.TypeURL())
	return append(b, d.names...)
}

// response takes a response and makes the request that acknowledges it.
func (d *diff) response(b []byte) []byte {
	var version, nonce []byte
	for i := 0; len(b) > 0; {
		field, _, n := protowire.ConsumeTag(b)
		v, m := protowire.ConsumeBytes(b[n:])
		b = b[n+m:]
		switch field {
		case 1:
			version = v
		case 5:
			nonce = v
		case 2:
			d.entry(i, v)
			i++
		}
	}
	return d.request(version, nonce)
}

func (d *diff) entry(i int, v []byte) {
	if i == len(d.last) {
		d.last = append(d.last, nil)
	}
	if string(d.last[i]) == string(v) {
		return
	}
	d.last[i] = append([]byte(nil), v...)
	// An Any: type_url, value.
	_, _, n := protowire.ConsumeField(v)
	_, _, m := protowire.ConsumeTag(v[n:])
	payload, _ := protowire.ConsumeBytes(v[n+m:])
	name, stamp, _ := unmarshal(d.e.TypeURL(), payload)
	d.e.Deliver(name, 0, stamp)
}
