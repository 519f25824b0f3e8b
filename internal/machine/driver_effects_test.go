package machine

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/testutil/script"
)

func (d *driver) leave(s Send) {
	number := slices.Index(d.numbers, s.Ref) + 1
	d.print("%s", script.Request(number, bytes.Join(s.Message, nil), d.delta))
	d.step(Written{s.Ref})
}

func (d *driver) decode(t *Task) []Result {
	if d.verbose {
		d.print("* decode %d", len(t.Items))
	}
	return decode(d.kinds, t)
}

func decode(kinds map[string]resource.AnyType, t *Task) []Result {
	kind := kinds[script.Short(t.Type.URL)]
	rs := make([]Result, len(t.Items))
	for i, it := range t.Items {
		rs[i] = decodeItem(kind, it)
	}
	return rs
}

func decodeItem(kind resource.AnyType, it Item) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = Result{Err: fmt.Errorf("the decoder panicked: %s", redact.Panic(p))}
		}
	}()
	v, err := kind.Decode(resource.Source{}, it.Raw)
	r = Result{Value: v, Err: err}
	if it.Old != nil {
		old, _ := kind.Decode(resource.Source{}, it.Old)
		r.Same = err == nil && old == v && it.Attributes.Same(it.OldAttributes)
	}
	return r
}

func (d *driver) print(format string, args ...any) {
	d.out = append(d.out, fmt.Sprintf(format, args...))
}

func (d *driver) tell(n Notice) {
	if n.Kind == NoticeResponse && n.Ignored {
		d.print("* ignored %s", cmp.Or(script.Short(n.TypeURL), "-"))
	}
	if n.Held {
		r := decodeItem(d.kinds[script.Short(n.TypeURL)], Item{Raw: n.Raw})
		if n.Value = r.Value; r.Err != nil {
			n.Kind, n.Fault = NoticeFailed, &Fault{Kind: FaultRejected, Err: r.Err}
		}
	}
	for _, w := range append(slices.Clone(n.To), n.All...) {
		if w.sub != nil {
			d.print("%s: %s", w.Owner, describe(n))
		}
	}
}
