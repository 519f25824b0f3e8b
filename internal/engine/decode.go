package engine

import (
	"bytes"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
)

// decodeMore starts workers while there is work; each does one task.
func (e *Engine) decodeMore() {
	for len(e.tasks) > 0 && e.busy < workers() {
		t := e.tasks[0]
		e.tasks[0] = nil
		e.tasks = e.tasks[1:]
		e.busy++
		kind, src := e.kinds[t.Type.URL], e.config.Servers[t.Server].Source
		e.work.Go(func() {
			e.post(machine.Decoded{Task: t, Results: decode(kind, src, t.Items)})
		})
	}
}

func decode(k resource.Kind, src resource.Source, items []machine.Item) []machine.Result {
	rs := make([]machine.Result, len(items))
	for i := range items {
		it, r := &items[i], &rs[i]
		r.Value, r.Err = decodeOne(k, src, it.Raw)
		if r.Err != nil {
			continue
		}
		r.Same = it.Old != nil && same(k, src, r.Value, it.Old)
		r.Raw = it.Raw
		if !it.Held {
			r.Raw = bytes.Clone(it.Raw) // it must not pin the frame
		}
	}
	return rs
}

// Decode decodes a payload of a server on the caller's goroutine.
func (e *Engine) Decode(k resource.Kind, server int, raw []byte) (any, error) {
	return decodeOne(k, e.config.Servers[server].Source, raw)
}

// decodeOne turns a decoder's panic into the resource's error.
func decodeOne(k resource.Kind, src resource.Source, raw []byte) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("the decoder panicked: %v", p)
		}
	}()
	return k.Decode(src, raw)
}

// same says whether two payloads mean the same: map entries have no order on the wire.
// Values that are no messages are compared where Go can.
func same(k resource.Kind, src resource.Source, value any, old []byte) bool {
	src.Validate = false
	was, err := decodeOne(k, src, old)
	if err != nil {
		return false
	}
	if msg, ok := value.(proto.Message); ok {
		oldMsg, ok := was.(proto.Message)
		return ok && proto.Equal(msg, oldMsg)
	}
	return reflect.ValueOf(value).Comparable() && reflect.ValueOf(was).Comparable() && value == was
}
