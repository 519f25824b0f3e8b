package main

import (
	"fmt"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// headLen is more than what stands before the resources in a response.
const headLen = 192

type frame struct{ head []byte }

// rawCodec looks at the head of a response and drops the rest.
type rawCodec struct{}

func (rawCodec) Name() string                           { return "proto" }
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) { return v.(mem.BufferSlice), nil }

func (rawCodec) Unmarshal(d mem.BufferSlice, v any) error {
	f := v.(*frame)
	f.head = f.head[:0]
	for _, b := range d {
		f.head = append(f.head, b.ReadOnlyData()[:min(b.Len(), headLen-len(f.head))]...)
		if len(f.head) == headLen {
			break
		}
	}
	return nil
}

// raw never looks at a resource.
type raw struct {
	e     *kit.Env
	cc    *grpc.ClientConn
	delta bool

	mu        sync.Mutex
	ss        grpc.ClientStream // nil before the first name
	names     []byte            // entries of the names field, one after another
	initial   []byte            // entries of initial_resource_versions
	nonce     []byte
	cancelled int
}

func (r *raw) Close() { _ = r.cc.Close() }

func (r *raw) Subscribe(names []string) error {
	r.names = appendNames(r.names, fieldNames, names...)
	if r.e.Work == kit.Reconnect && r.delta {
		// Ready-made: this is no part of what is measured.
		for _, name := range r.e.Scenario().Names() {
			r.initial = appendBytes(r.initial, fieldInitial, appendString(appendString(nil, 1, name), 2, "v000000"))
		}
	}
	return r.connect(nil)
}

// connect opens a stream; the request that asks for all names ends with more.
func (r *raw) connect(more []byte) error {
	method := methodSotW
	if r.delta {
		method = methodDelta
	}
	ss, err := openStream(r.cc, method, rawCodec{})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.ss, r.nonce = ss, r.nonce[:0]
	err = r.send(ss, r.names, more)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	go r.receive(ss)
	return nil
}

// send sends a request of parts; with the lock.
func (r *raw) send(ss grpc.ClientStream, parts ...[]byte) error {
	m := mem.BufferSlice{mem.SliceBuffer(r.head())}
	for _, p := range parts {
		m = append(m, mem.SliceBuffer(p))
	}
	return ss.SendMsg(m)
}

// head is all of a request but the names.
func (r *raw) head() []byte {
	typ, nonce := protowire.Number(fieldTypeSotW), protowire.Number(fieldNonceSotW)
	var b []byte
	if r.delta {
		typ, nonce = fieldTypeDelta, fieldNonceDelta
	} else if len(r.nonce) > 0 {
		b = appendString(b, fieldVersion, "v"+string(r.nonce[:8]))
	}
	b = appendString(b, typ, r.e.TypeURL())
	if len(r.nonce) > 0 {
		b = appendBytes(b, nonce, r.nonce)
	}
	return b
}

func (r *raw) Watch(name string, watcher int) error {
	if r.e.Work == kit.Fanout && watcher > 0 {
		return nil
	}
	r.mu.Lock()
	before := len(r.names)
	r.names = appendNames(r.names, fieldNames, name)
	if r.ss == nil {
		r.mu.Unlock()
		return r.connect(nil)
	}
	defer r.mu.Unlock()
	if !r.delta {
		return r.send(r.ss, r.names)
	}
	r.nonce = nil
	return r.send(r.ss, r.names[before:])
}

func (r *raw) Cancel(string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled++; r.cancelled < r.e.N-1 {
		return nil
	}
	if !r.delta {
		return r.send(r.ss, r.names[len(r.names)/r.e.N*(r.e.N-1):])
	}
	r.nonce = nil
	var gone []byte
	sc := r.e.Scenario()
	for i := range r.cancelled {
		gone = appendString(gone, fieldGone, sc.Name(i))
	}
	return r.send(r.ss, gone)
}

func (r *raw) receive(ss grpc.ClientStream) {
	f := &frame{head: make([]byte, 0, headLen)}
	for {
		if err := ss.RecvMsg(f); err != nil {
			reconnect(r.e, func() error { return r.connect(r.initial) })
			return
		}
		// The version, then the nonce: "%08d-%s-%08d", a number, the stamp, and how many.
		_, _, n := protowire.ConsumeField(f.head)
		_, _, tn := protowire.ConsumeTag(f.head[n:])
		nonce, _ := protowire.ConsumeBytes(f.head[n+tn:])
		if r.acknowledge(ss, nonce) == nil {
			stamp, count := nonce[9:9+kit.StampLen], nonce[9+kit.StampLen+1:]
			r.e.DeliverFrame(number(count), string(stamp))
		}
	}
}

func (r *raw) acknowledge(ss grpc.ClientStream, nonce []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nonce = append(r.nonce[:0], nonce...)
	if r.delta {
		return r.send(ss)
	}
	return r.send(ss, r.names)
}

func number(b []byte) (n int) {
	for _, c := range b {
		n = n*10 + int(c-'0')
	}
	return n
}

// reconnect opens a new stream, if the workload is about that.
func reconnect(e *kit.Env, connect func() error) {
	if e.Work != kit.Reconnect {
		return
	}
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
