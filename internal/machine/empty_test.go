package machine

import (
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// A message without any field is a value: it is told, also to who watches later, and is unchanged when it comes again.
//
// spec: CACHE-2 WATCH-3 WATCH-4
func TestEmptyMessage(t *testing.T) {
	r := newRig(t, Config{}, Server{Delta: true})
	r.step(Start{r.watch("a")})
	r.up()
	receive := func(nonce string) (told []NoticeKind) {
		resp := &wire.Response{TypeURL: r.typ.URL, Nonce: nonce, Resources: []wire.Resource{{
			Name: []byte("a"), Version: []byte(nonce), TypeURL: []byte(r.typ.URL), HasBody: true,
		}}}
		for _, task := range r.step(Received{r.ref, resp}).Decode {
			kinds, _ := news(r.decode(task))
			told = append(told, kinds...)
		}
		r.step(Written{r.ref}, Delivered{r.ref})
		return told
	}
	if told := receive("1"); len(told) != 1 || told[0] != NoticeUpdated {
		t.Errorf("told are %v, want the value", told)
	}
	if told := receive("2"); len(told) != 0 {
		t.Errorf("told are %v when it comes again", told)
	}
	if told, _ := news(r.step(Start{r.watch("a")})); len(told) != 1 || told[0] != NoticeUpdated {
		t.Errorf("who watches later is told %v, want the value", told)
	}
}

// So it is if the store has it.
//
// spec: LKG-3
func TestEmptyMessageStored(t *testing.T) {
	r := newRig(t, Config{}, Server{})
	r.m.sources[0].Stored, r.typ.Stored = true, true
	r.step(Start{r.watch("a")})
	r.up()
	r.now = r.now.Add(loadAfter)
	for _, ld := range r.step(Tick{}).Load {
		for _, task := range r.step(Loaded{Load: ld, Entries: []Kept{{Name: "a"}}, Last: true}).Decode {
			r.decode(task)
		}
	}
	if told, _ := news(r.step(Start{r.watch("a")})); len(told) != 1 || told[0] != NoticeUpdated {
		t.Errorf("who watches later is told %v, want the stored value", told)
	}
}

// So it is if its metadata comes again in another order of the bytes, which is no news.
//
// spec: CACHE-2 WATCH-4
func TestEmptyMessageSame(t *testing.T) {
	r := newRig(t, Config{}, Server{Delta: true})
	r.step(Start{r.watch("a")})
	r.up()
	var told []NoticeKind
	for _, metadata := range []string{"ab", "ba"} {
		resp := &wire.Response{TypeURL: r.typ.URL, Nonce: metadata, Resources: []wire.Resource{{
			Name: []byte("a"), Version: []byte(metadata), TypeURL: []byte(r.typ.URL), HasBody: true,
			Attributes: &wire.Attributes{Metadata: []byte(metadata)},
		}}}
		for _, task := range r.step(Received{r.ref, resp}).Decode {
			kinds, _ := news(r.step(Decoded{task, []Result{{Value: "", Same: metadata == "ba"}}}))
			told = append(told, kinds...)
		}
		r.step(Written{r.ref}, Delivered{r.ref})
	}
	if len(told) != 1 || told[0] != NoticeUpdated {
		t.Errorf("told are %v, want the value once", told)
	}
	if told, _ := news(r.step(Start{r.watch("a")})); len(told) != 1 || told[0] != NoticeUpdated {
		t.Errorf("who watches later is told %v, want the value", told)
	}
}
