package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// many is n, or less where the race detector makes everything that much larger and slower.
func many(n int) int {
	if race.Enabled {
		return n / 20
	}
	return n
}

func delta(c *client.Config) { c.Variant = client.VariantDelta }

// tallied is a handler that counts what it hears, by kind.
type tallied [client.EventSynced + 1]atomic.Int64

func (c *tallied) hear(ev client.Event[any]) { c[ev.Kind].Add(1) }

func (c *tallied) batch(b client.Batch[any]) {
	for _, ev := range b.Events {
		c.hear(ev)
	}
}

// A response of 64 MiB is one like any other.
// spec: STREAM-7
func TestCostOfHugeResponse(t *testing.T) {
	race.SkipCost(t)
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		const size = 64 << 20
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a", strings.Repeat("x", size))))
		r.request(st, "cds [a] v1 n1")
		rec.heard(t, "updated a 1")
		if n := len(rec.last().Raw); n <= size {
			t.Errorf("%d bytes arrived of more than %d", n, size)
		}
	}, func(c *client.Config) { c.MaxResourceSize = -1 })
}

// A response over the limit ends its stream with an error that names the limit and how to
// raise it; what is held stays.
// spec: STREAM-7
func TestOverLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.clusters(st, "1", "n1", "a")
		st.End(nil)
		st = r.accept()
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a", strings.Repeat("x", 1<<20))))
		<-st.Done()
		rec.heard(t, "updated a 1", "ambient error a stream")
		err := rec.last().Err
		for _, part := range []string{"limit of 1048576 bytes", "MaxReceiveSize", r.srv.Target()} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not name %q: %v", part, err)
			}
		}
		if code := status.Code(errors.Unwrap(err)); code != codes.ResourceExhausted {
			t.Errorf("the code is %v", code)
		}
		r.clusters(r.accept(), "3", "n1", "a")
		rec.heard(t, "updated a 1", "ambient error a stream", "updated a 3")
	}, func(c *client.Config) { c.GRPC.MaxReceiveSize = 1 << 20 })
}

// A million names in one set: one request asks for them, a few responses answer, and their end
// leaves nothing.
// spec: STREAM-9 S-35
func TestCostOfMillionNames(t *testing.T) {
	race.SkipCost(t)
	const n = 1_000_000
	const each = 250_000
	names, payload := make([]string, n), make([][]byte, (n+each-1)/each)
	for i := range names {
		names[i] = fmt.Sprintf("name-%07d", i)
		b, err := proto.Marshal(testutil.Wrapped(names[i], "1", assignment(names[i])))
		must(t, err)
		to := &payload[i/each]
		*to = protowire.AppendBytes(protowire.AppendTag(*to, 2, protowire.BytesType), b)
	}
	inBubble(t, func(t *testing.T, r *rig) {
		var heard tallied
		conns := client.CountConns(r.c)
		set, err := r.c.NewSet(context.Background(), eds.Type, heard.batch)
		must(t, err)
		must(t, set.Add(names...))
		st := r.accept()
		req, err := st.Next(t.Context())
		must(t, err)
		if got := len(req.Names()); got != n {
			t.Fatalf("the request has %d names", got)
		}
		for i, resources := range payload {
			nonce := fmt.Sprint("n", i)
			head, err := proto.Marshal(testutil.Delta(eds.Type.TypeURL(), nonce, nil))
			must(t, err)
			must(t, st.SendBytes(append(resources, head...)))
			r.request(st, "eds [] "+nonce)
		}
		must(t, r.c.Ready(t.Context()))
		if got := heard[client.EventUpdated].Load(); got != int64(n) {
			t.Errorf("%d values", got)
		}
		set.Stop()
		synctest.Wait()
		time.Sleep(time.Minute)
		if client.Live(r.c) != 0 || len(r.c.Dump()) != 0 || conns.Open.Load() != 0 {
			t.Errorf("left: %d watches, %d resources, %d connections", client.Live(r.c), len(r.c.Dump()), conns.Open.Load())
		}
	}, delta)
}

// A name may be a megabyte long. Where it is wrong it does not fill the log or the NACK.
func TestMegabyteNames(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var recs []*record
		var names []string
		for _, c := range "abcd" {
			names = append(names, strings.Repeat(string(c), 1<<20))
			_, rec := r.watch(names[len(names)-1])
			recs = append(recs, rec)
		}
		st := r.accept()
		time.Sleep(time.Second)
		var ms []proto.Message
		for _, name := range names {
			c := cluster(name, "")
			c.LbPolicy = -1
			ms = append(ms, c)
		}
		r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", ms...))
		synctest.Wait()
		req := st.Requests()[len(st.Requests())-1]
		if text := req.ErrorDetail().GetMessage(); len(text) == 0 || len(text) > 4096 {
			t.Errorf("the NACK has a text of %d bytes", len(text))
		}
		if n := len(r.log.text()); n > 8<<10 {
			t.Errorf("the log has %d bytes", n)
		}
		r.clusters(st, "2", "n2", names...)
		for i, rec := range recs {
			rec.heard(t, "failed "+names[i]+" rejected: "+strings.TrimPrefix(trouble(rec.all()[0].Err), "rejected: "), "updated "+names[i]+" 2")
		}
	})
}

// nested is a cluster whose metadata is a value that many lists deep.
func nested(name string, depth int) *clusterv3.Cluster {
	v := structpb.NewNullValue()
	for range depth {
		v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
	}
	return &clusterv3.Cluster{Name: name, Metadata: &corev3.Metadata{
		FilterMetadata: map[string]*structpb.Struct{"m": {Fields: map[string]*structpb.Value{"k": v}}},
	}}
}

// nestedBytes encodes nested without recursion: each level is wrapped around the last.
func nestedBytes(name string, depth int) []byte {
	// Written backwards, from the innermost null value.
	b := []byte{0, 0x08} // null_value: 0
	size := 2
	prefix := func(tag byte) {
		var head []byte
		head = protowire.AppendVarint(append(head, tag), uint64(size))
		for i := len(head) - 1; i >= 0; i-- {
			b = append(b, head[i])
		}
		size += len(head)
	}
	for range depth {
		prefix(0x0a) // ListValue.values
		prefix(0x32) // Value.list_value
	}
	prefix(0x12) // value of the entry
	b, size = append(b, 'k', 1, 0x0a), size+3
	prefix(0x0a) // Struct.fields
	prefix(0x12) // value of the entry
	b, size = append(b, 'm', 1, 0x0a), size+3
	prefix(0x0a)                                              // Metadata.filter_metadata
	head := protowire.AppendTag(nil, 25, protowire.BytesType) // Cluster.metadata
	head = protowire.AppendVarint(head, uint64(size))
	out := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
	out = append(out, head...)
	for i := len(b) - 1; i >= 0; i-- {
		out = append(out, b[i])
	}
	return out
}

// A value nested deeper than the decoder goes is refused, whatever the depth; one that the
// decoder takes is used. Neither is a crash.
// spec: ACK-4
func TestDeeplyNested(t *testing.T) {
	if want, got := nested("a", 40), new(clusterv3.Cluster); proto.Unmarshal(nestedBytes("a", 40), got) != nil || !proto.Equal(want, got) {
		t.Fatalf("the test's encoding is wrong: %v", got)
	}
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		for i, tt := range []struct {
			depth int
			good  bool
		}{{20_000, false}, {1_000_000, false}, {4_000, true}} {
			if tt.depth > 100_000 && testing.Short() {
				continue
			}
			version, nonce := fmt.Sprint(i), fmt.Sprint("n", i)
			a := testutil.SotW(cds.Type.TypeURL(), version, nonce, cluster("a", ""))
			a.Resources[0].Value = nestedBytes("a", tt.depth)
			r.send(st, a)
			req, err := st.Next(t.Context())
			must(t, err)
			synctest.Wait()
			ev := rec.last()
			if nacked := req.ErrorDetail() != nil; nacked == tt.good || tt.good != (ev.Kind == client.EventUpdated) {
				t.Errorf("%d lists deep: NACK %v, told %v %v", tt.depth, req.ErrorDetail(), ev.Kind, ev.Err)
			}
		}
	})
}

// raw is a response of one entry many times, made without a message of that size.
func raw(t *testing.T, typeURL string, n int, entry []byte) []byte {
	t.Helper()
	b, err := proto.Marshal(&discoveryv3.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: "1", Nonce: "n1"})
	must(t, err)
	one := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), entry)
	for range n {
		b = append(b, one...)
	}
	return b
}

// A name that comes some hundred thousand times is one fault of one name.
// spec: ACK-11 ACK-5
func TestMillionDuplicates(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a name a hundred thousand times")
	}
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		entry, err := proto.Marshal(testutil.SotW("", "", "", cluster("a", "")).Resources[0])
		must(t, err)
		must(t, st.SendBytes(raw(t, cds.Type.TypeURL(), many(wire.MaxResources), entry)))
		req, err := st.Next(t.Context())
		must(t, err)
		if text := req.ErrorDetail().GetMessage(); len(text) != 4096 {
			t.Errorf("the NACK has a text of %d bytes", len(text))
		}
		synctest.Wait()
		if evs := rec.all(); len(evs) != 1 || evs[0].Kind != client.EventFailed {
			t.Errorf("heard %v", lines(evs))
		}
	})
}

// A server may remove a million names, known or not.
func TestMillionRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a million names")
	}
	inBubble(t, func(t *testing.T, r *rig) {
		_, rec := r.watch("name-7")
		st := r.accept()
		r.request(st, "cds [name-7]")
		removed := make([]string, many(1_000_000))
		for i := range removed {
			removed[i] = fmt.Sprint("name-", i)
		}
		r.send(st, testutil.Delta(cds.Type.TypeURL(), "n1", nil, removed...))
		r.request(st, "cds [] n1")
		rec.heard(t, "does not exist name-7 removed")
	}, delta)
}

// Ten thousand types share a stream.
// spec: ADS-1
func TestManyTypes(t *testing.T) {
	if testing.Short() {
		t.Skip("long: ten thousand types")
	}
	n := many(10_000)
	inBubble(t, func(t *testing.T, r *rig) {
		var heard tallied
		for i := range n {
			kind := resource.Custom(fmt.Sprintf("%stest.T%05d", resource.TypePrefix, i), resource.Options{},
				func(_ resource.Source, b []byte) (any, error) { return string(b), nil })
			_, err := r.c.Watch(context.Background(), kind, "a", heard.hear)
			must(t, err)
		}
		st := r.accept()
		for range n {
			req, err := st.Next(t.Context())
			must(t, err)
			a := testutil.Wrapped("a", "1", cluster("a", ""))
			a.Resource.TypeUrl = req.TypeURL()
			r.send(st, testutil.SotW(req.TypeURL(), "1", "n", a))
		}
		must(t, r.c.Ready(t.Context()))
		if got := heard[client.EventUpdated].Load(); got != int64(n) {
			t.Errorf("%d values of %d types", got, n)
		}
	}, func(c *client.Config) { c.Streams = client.StreamsAggregated })
}
