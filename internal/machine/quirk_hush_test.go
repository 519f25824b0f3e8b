package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Names that a program adds and drops again are not remembered for ever, though the server speaks so often that their
// time never comes.
//
// spec: S-30
func TestHushForgetsNames(t *testing.T) {
	r := newRig(t, Config{ResourceTimeout: 15 * time.Second}, Server{PerType: true})
	r.step(Start{r.watch("r0000")})
	r.up()
	answer := func(names ...string) {
		resp := &wire.Response{TypeURL: r.typ.URL, Version: "1", Nonce: "1"}
		for _, name := range names {
			resp.Resources = append(resp.Resources, wire.Resource{
				Name: []byte(name), TypeURL: []byte(r.typ.URL), Payload: []byte(name), HasBody: true,
			})
		}
		for _, task := range r.step(Received{r.ref, resp}).Decode {
			r.decode(task)
		}
		r.step(Delivered{r.ref}, Written{r.ref})
	}
	answer("r0000")
	l := r.m.streams[0].links[0]
	var q *hushes
	for _, each := range r.m.streams[0].quirks {
		if of, is := each.(*hushes); is {
			q = of
		}
	}
	most := 0
	for i := range 500 {
		w := r.watch(fmt.Sprintf("x%d", i))
		for _, ev := range []Event{Start{w}, Stop{w}} {
			r.step(ev)
			r.now = r.now.Add(hush / 2) // the pace of requests
			r.step(Tick{})
			r.step(Written{r.ref})
			answer("r0000", w.Name)
		}
		if u := q.of[l]; u != nil {
			most = max(most, len(u.names))
		}
	}
	if most < 64 || most > 80 {
		t.Errorf("%d names are remembered at most, want some more than 64", most)
	}
}

// A poll asks anew for all names by itself, so none needs a new stream.
//
// spec: S-30 P-1
func TestHushNotOfPolls(t *testing.T) {
	for _, polled := range []bool{false, true} {
		r := newRig(t, Config{}, Server{PerType: true, Polled: polled})
		r.addUnanswered()
		r.now = r.now.Add(hush)
		if fx := r.step(Tick{}); (len(fx.Open) == 0) != polled {
			t.Errorf("polled %t: %d streams are asked for, for a name that the server may not have heard of", polled, len(fx.Open))
		}
	}
}
