package engine

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/listing"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/internal/protoequal"
	"github.com/xdswatch/xdswatch/internal/protosize"
	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/resource"
)

// worker decodes task after task. It ends with the engine, or when it had nothing to do for a
// while: its stack has grown to what decoders need, which is worth keeping between responses.
type worker struct {
	jobs  chan job // room for one; closed to end the worker
	since time.Time
}

type job struct {
	task   *machine.Task
	kind   resource.AnyType
	source resource.Source
}

// done is a worker's result.
type done struct {
	worker  *worker
	decoded machine.Decoded
}

// idleTime is how long a worker without work stays.
const idleTime = time.Second

// workers is how many payload chunks are decoded at a time. One processor is left to the loop,
// the dispatchers and the program: with two decoders on two processors a load takes a sixth
// less time and a sixth more of them (bench/RESULTS.md).
func workers() int { return max(1, runtime.GOMAXPROCS(0)-1) }

// decoders are the workers, and the tasks that wait for one; owned by the loop.
type decoders struct {
	tasks turns
	busy  int       // workers
	idle  []*worker // the longest idle first
}

// next takes a task if there may be a worker for it; nil if not, or if there is none.
func (d *decoders) next() (t *machine.Task) {
	if d.busy < workers() {
		t = d.tasks.next()
	}
	if t != nil {
		d.busy++
	}
	return t
}

// rest takes a worker back that has done its task.
func (d *decoders) rest(w *worker) {
	d.busy--
	w.since = time.Now()
	d.idle = append(d.idle, w)
}

// dismiss ends the workers that are idle since before a time.
func (d *decoders) dismiss(before time.Time) {
	for len(d.idle) > 0 && !d.idle[0].since.After(before) {
		close(d.idle[0].jobs)
		d.idle = d.idle[1:]
	}
}

// dismissal is when the longest idle worker ends; zero for never.
func (d *decoders) dismissal() time.Time {
	if len(d.idle) == 0 {
		return time.Time{}
	}
	return d.idle[0].since.Add(idleTime)
}

// decodeMore gives tasks to workers as far as there may be workers.
func (e *Engine) decodeMore() {
	for t := e.decoders.next(); t != nil; t = e.decoders.next() {
		e.worker().jobs <- job{t, kindOf(t.Type), e.server(t.Server).Source}
	}
}

func kindOf(t *machine.Type) resource.AnyType { return t.Owner.(resource.AnyType) }

// worker finds an idle worker or starts one.
func (e *Engine) worker() *worker {
	if n := len(e.decoders.idle); n > 0 {
		w := e.decoders.idle[n-1]
		e.decoders.idle = e.decoders.idle[:n-1]
		return w
	}
	w := &worker{jobs: make(chan job, 1)}
	e.work.Go(func() { e.serve(w, nil) })
	return w
}

// serve does the jobs of a worker. half, if not nil, is a job that another goroutine left half done; it comes
// first.
func (e *Engine) serve(w *worker, half *decoding) {
	d, over := half, false
	defer func() {
		if !over { // a decoder ended the goroutine (runtime.Goexit): another takes its place
			d.skip()
			e.work.Go(func() { e.serve(w, d) })
		}
	}()
	for {
		if d != nil {
			d.finish()
			if !e.post(done{w, machine.Decoded{Task: d.task, Results: d.results}}) {
				break
			}
			d = nil
		}
		j, more := w.next(e.stop)
		if !more {
			break
		}
		d = &decoding{job: j, results: make([]machine.Result, len(j.task.Items))}
	}
	over = true
}

// next waits for a job; there is none when the worker or the engine ends.
func (w *worker) next(stop <-chan struct{}) (j job, more bool) {
	select {
	case j, more = <-w.jobs:
	case <-stop:
	}
	return j, more
}

// decoding is a job under way.
type decoding struct {
	job
	results []machine.Result
	at      int // of the item that is decoded
}

// finish decodes what is left.
func (d *decoding) finish() {
	for ; d.at < len(d.results); d.at++ {
		d.results[d.at] = decode(d.kind, d.source, &d.task.Items[d.at])
	}
}

// errGoexit refuses a resource whose decoder did not return.
var errGoexit = errors.New("the decoder ended its goroutine (runtime.Goexit)")

// skip refuses the item that is decoded.
func (d *decoding) skip() {
	d.results[d.at].Err = errGoexit
	d.at++
}

// decode decodes an item; what it keeps of it shares no bytes with the frame.
func decode(k resource.AnyType, src resource.Source, it *machine.Item) (r machine.Result) {
	raw := bytes.Clone(it.Raw) // the frame is used again, and the value may refer to it
	it.Raw = raw
	if r.Err = checkMetadata(it.Attributes); r.Err != nil {
		return r
	}
	old := it.Old
	if old != nil && !sameAttributes(it.Attributes, it.OldAttributes) {
		old = nil
	}
	if it.Locator {
		to, err := listing.NewRedirect(k, raw)
		if r.Err = err; err == nil {
			r.Value, r.Same = to, old != nil && len(old) == len(raw) && to.Is(old)
		}
		return r
	}
	r.Value, r.Flaws, r.Err = decodeNext(k, src, raw, it.Old)
	// WATCH-4, S-22: bytes in another order are no news.
	r.Same = r.Err == nil && len(old) == len(raw) && old != nil && same(k, src, r.Value, raw, old)
	return r
}

// checkMetadata says what is wrong with the metadata of a resource.
func checkMetadata(a *wire.Attributes) error {
	if a == nil || len(a.Metadata) == 0 {
		return nil
	}
	m := new(corev3.Metadata)
	if err := protosize.Check(a.Metadata, m.ProtoReflect().Descriptor()); err != nil {
		return fmt.Errorf("the metadata of the resource: %w", err)
	}
	if err := proto.Unmarshal(a.Metadata, m); err != nil {
		return fmt.Errorf("the metadata of the resource does not parse: %w", err)
	}
	return nil
}

// sameAttributes says whether two mean the same, aliases aside.
func sameAttributes(a, b *wire.Attributes) bool {
	if a.Same(b) {
		return true
	}
	if a == nil || b == nil || a.DoNotCache != b.DoNotCache || !shuffled(a.Metadata, b.Metadata) {
		return false
	}
	var now, was corev3.Metadata
	return proto.Unmarshal(a.Metadata, &now) == nil && proto.Unmarshal(b.Metadata, &was) == nil && protoequal.Equal(&now, &was)
}

// shuffled says whether two payloads of one length may hold the same bytes in another
// order, as they do if they differ in the order of fields and map entries only. So most
// changes cost no second decoding.
func shuffled(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	var sum, squares int64
	for i := range a {
		x, y := int64(a[i]), int64(b[i])
		sum += x - y
		squares += x*x - y*y
	}
	return sum == 0 && squares == 0
}

// Decode decodes a payload of a server on the caller's goroutine.
func (e *Engine) Decode(k resource.AnyType, server int, raw []byte) (any, error) {
	return decodeOne(k, e.server(server).Source, raw)
}

// exited is the fault of a held resource whose decoder ended its goroutine.
var exited = &machine.Fault{Kind: machine.FaultRejected, Err: errGoexit}

// Held is what a watch, which need not live, would be told of the value that is held; nil if there is none.
func (e *Engine) Held(w *machine.Watch) *machine.Notice {
	var r machine.Resource
	e.ask(func() { r, _ = e.machine.Held(int(w.Source), w.Type.URL, w.Name) })
	if r.Raw == nil {
		return nil
	}
	n := &machine.Notice{News: machine.News{
		Kind: machine.NoticeUpdated, Server: r.Server, Name: w.Name, Version: r.Version,
		Raw: r.Raw, Attributes: r.Attributes, Stale: r.Stale,
	}, Held: true, Locator: r.Locator, Whole: r.Whole}
	e.decodeHeld(n, w)
	return n
}

// decodeHeld decodes what a notice holds for a watch, if that wants to hear it, on the caller's goroutine. It was accepted
// once, but its decoder may have changed its mind: then the notice is one of a failure.
func (e *Engine) decodeHeld(n *machine.Notice, w *machine.Watch) {
	if !w.Owner.(Sink).Alive() {
		return
	}
	n.Held, n.Kind, n.Fault = false, machine.NoticeFailed, exited // so it is if the decoder does not return
	var value any
	var err error
	switch kind := kindOf(w.Type); {
	case n.Locator:
		value, err = listing.NewRedirect(kind, n.Raw)
	case n.Whole != nil:
		value, err = e.decodeFlawed(kind, n)
	default:
		value, err = e.Decode(kind, n.Server, n.Raw)
	}
	if err != nil {
		n.Fault = &machine.Fault{Kind: machine.FaultRejected, Err: err, Version: n.Version}
		return
	}
	n.Kind, n.Fault, n.Value = machine.NoticeUpdated, nil, value
}

// decodeFlawed decodes a list collection with flaws, and the last one without.
func (e *Engine) decodeFlawed(kind resource.AnyType, n *machine.Notice) (any, error) {
	value, err := e.Decode(kind, n.Server, n.Raw)
	if err != nil {
		return nil, err
	}
	whole, err := e.Decode(kind, n.Server, n.Whole.Raw)
	if err != nil {
		return value, nil // its decoder has changed its mind
	}
	return value.(listing.Directory).After(whole.(listing.Directory), n.Whole.Version), nil
}

func decodeOne(k resource.AnyType, src resource.Source, raw []byte) (any, error) {
	value, _, err := decodeNext(k, src, raw, nil)
	return value, err
}

// decodeNext turns a decoder's panic into the resource's error.
func decodeNext(k resource.AnyType, src resource.Source, raw, before []byte) (value any, flaws []error, err error) {
	defer func() {
		if p := recover(); p != nil {
			// TYPE-7: a panic is the resource's error.
			value, flaws, err = nil, nil, fmt.Errorf("the decoder panicked: %s", redact.Panic(p))
		}
	}()
	if list, ok := k.(listing.Kind); ok {
		value, flaws, err = list.DecodeNext(src, raw, before)
	} else {
		value, err = k.Decode(src, raw)
	}
	return value, flaws, WithText(err)
}

// same says whether two payloads of one length mean the same: map entries have no order on the
// wire, those inside an Any included. Values that are no messages are compared where Go can
// (WATCH-4).
func same(k resource.AnyType, src resource.Source, value any, raw, old []byte) bool {
	msg, isMessage := value.(proto.Message)
	if isMessage && !shuffled(raw, old) || !isMessage && !reflect.ValueOf(value).Comparable() {
		return false
	}
	src.Validate = false
	was, err := decodeOne(k, src, old)
	if err != nil {
		return false
	}
	if isMessage {
		oldMsg, ok := was.(proto.Message)
		return ok && protoequal.Equal(msg, oldMsg)
	}
	return reflect.ValueOf(was).Comparable() && value == was
}
