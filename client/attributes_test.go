package client_test

import (
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// metadata has some keys with a value each.
func metadata(t *testing.T, value string, keys ...string) *corev3.Metadata {
	t.Helper()
	m := &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{}}
	for _, key := range keys {
		s, err := structpb.NewStruct(map[string]any{"value": value})
		must(t, err)
		m.FilterMetadata[key] = s
	}
	return m
}

// metadataBytes is the wire form of the metadata of single keys, in that order.
func metadataBytes(t *testing.T, value string, keys ...string) []byte {
	t.Helper()
	var all []byte
	for _, key := range keys {
		b, err := proto.Marshal(metadata(t, value, key))
		must(t, err)
		all = append(all, b...)
	}
	return all
}

// described is a delta response with one cluster that has metadata of some bytes.
func described(t *testing.T, nonce string, metadata []byte) []byte {
	t.Helper()
	const resources, field = 2, 9
	r, err := proto.Marshal(testutil.Wrapped("a", nonce, cluster("a", "")))
	must(t, err)
	r = protowire.AppendBytes(protowire.AppendTag(r, field, protowire.BytesType), metadata)
	b, err := proto.Marshal(testutil.Delta(cds.Type.TypeURL(), nonce, nil))
	must(t, err)
	return protowire.AppendBytes(protowire.AppendTag(b, resources, protowire.BytesType), r)
}

func sameAttributes(t *testing.T, what string, got, want *client.Attributes) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// What stands beside a value is in its events, in what Get returns and in the dump.
//
// spec: TYPE-5 RELAY-2
func TestAttributes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		bs := newBatches(t)
		_, err := r.c.WatchAll(t.Context(), cds.Type, "*", bs.hear)
		must(t, err)
		_, a := r.watch("a")
		st := r.accept()
		want := &client.Attributes{Aliases: []string{"x", "y"}, DoNotCache: true, Metadata: metadata(t, "1", "k", "l")}
		res := testutil.Wrapped("a", "1", cluster("a", ""))
		res.Aliases, res.Metadata = want.Aliases, want.Metadata
		res.CacheControl = &discoveryv3.Resource_CacheControl{DoNotCache: true}
		plain := testutil.Wrapped("b", "1", cluster("b", ""))
		r.send(st, testutil.Delta(cds.Type.TypeURL(), "n1", []*discoveryv3.Resource{res, plain}))
		bs.heard(t, []string{"updated a 1", "updated b 1", "synced *", "."})
		sameAttributes(t, "the watch", a.last().Attributes, want)
		sameAttributes(t, "the batch", bs.list[0].Events[0].Attributes, want)
		sameAttributes(t, "what says nothing", bs.list[0].Events[1].Attributes, nil)
		sameAttributes(t, "what is no value", bs.list[0].Events[2].Attributes, nil)
		_, late := r.watch("a")
		late.heard(t, "updated a 1")
		sameAttributes(t, "a late watch", late.last().Attributes, want)
		ev, err := r.c.Get(t.Context(), cds.Type, "a")
		must(t, err)
		sameAttributes(t, "Get", ev.Attributes, want)
		for _, s := range r.c.Dump() {
			if s.Name == "a" {
				sameAttributes(t, "the dump", s.Attributes, want)
			} else {
				sameAttributes(t, "the dump of "+s.Name, s.Attributes, nil)
			}
		}
	}, incremental)
}

// Metadata is a map: servers write it in another order each time, which is no change.
//
// spec: TYPE-5 WATCH-4
func TestMetadataHasNoOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, a := r.watch("a")
		st := r.accept()
		must(t, st.SendBytes(described(t, "1", metadataBytes(t, "red", "k", "l", "m"))))
		a.heard(t, "updated a 1")
		must(t, st.SendBytes(described(t, "2", metadataBytes(t, "red", "m", "k", "l"))))
		a.heard(t, "updated a 1")
		must(t, st.SendBytes(described(t, "3", metadataBytes(t, "der", "m", "k", "l"))))
		a.heard(t, "updated a 1", "updated a 3")
		sameAttributes(t, "the watch", a.last().Attributes, &client.Attributes{Metadata: metadata(t, "der", "k", "l", "m")})
	}, incremental)
}

// Metadata that does not parse makes the resource a bad one, until it does.
//
// spec: TYPE-5 TYPE-7
func TestBadMetadata(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		_, a := r.watch("a")
		st := r.accept()
		r.request(st, "cds [a]")
		bad := []byte{0x0a, 0xff}
		must(t, st.SendBytes(described(t, "1", bad)))
		req, err := st.Next(t.Context())
		must(t, err)
		if text := req.ErrorDetail().GetMessage(); !strings.Contains(text, "resource index 0: a: the metadata") {
			t.Errorf("the NACK says %q", text)
		}
		must(t, st.SendBytes(described(t, "2", metadataBytes(t, "red", "k"))))
		synctest.Wait()
		same(t, "heard", kindsOf(a), []string{"failed", "updated"})
		must(t, st.SendBytes(described(t, "3", bad)))
		synctest.Wait()
		same(t, "heard", kindsOf(a), []string{"failed", "updated", "ambient error"})
		_, late := r.watch("a")
		synctest.Wait()
		sameAttributes(t, "what is held", late.all()[0].Attributes, &client.Attributes{Metadata: metadata(t, "red", "k")})
	}, incremental)
}

// A wrapper is no resource, also inside another, however deep: it is refused, and what is
// held stays.
//
// spec: TYPE-3 TYPE-5
func TestWrapperInWrapper(t *testing.T) {
	for _, change := range [][]func(*client.Config){nil, {incremental}} {
		inBubble(t, func(t *testing.T, r *rig) {
			say := func(nonce string, res *discoveryv3.Resource) {
				if len(change) > 0 {
					r.send(r.srv.Streams()[0], testutil.Delta(cds.Type.TypeURL(), nonce, []*discoveryv3.Resource{res}))
				} else {
					r.send(r.srv.Streams()[0], testutil.SotW(cds.Type.TypeURL(), nonce, nonce, res))
				}
			}
			_, a := r.watch("a")
			st := r.accept()
			r.request(st, "cds [a]")
			say("1", testutil.Wrapped("a", "1", cluster("a", "")))
			a.heard(t, "updated a 1")
			_, err := st.Next(t.Context())
			must(t, err)
			nested := testutil.Wrapped("a", "2", cluster("a", "other"))
			for range 100 {
				nested = testutil.Wrapped("a", "2", nested)
			}
			say("2", nested)
			req, err := st.Next(t.Context())
			must(t, err)
			want := `a: type URL "type.googleapis.com/envoy.service.discovery.v3.Resource" does not match`
			if text := req.ErrorDetail().GetMessage(); !strings.Contains(text, want) {
				t.Errorf("the answer is %v", req)
			}
			synctest.Wait()
			same(t, "heard", kindsOf(a), []string{"updated", "ambient error"})
			say("3", testutil.Wrapped("a", "3", cluster("a", "other")))
			synctest.Wait()
			same(t, "heard", kindsOf(a), []string{"updated", "ambient error", "updated"})
		}, change...)
	}
}

func kindsOf(r *record) (kinds []string) {
	for _, ev := range r.all() {
		kinds = append(kinds, ev.Kind.String())
	}
	return kinds
}
