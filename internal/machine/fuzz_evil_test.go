package machine

import (
	"errors"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// oddNames are what servers of an evil world say beside names that are watched.
var oddNames = []string{"", "*", "nobody", "za", "zb", "xdstp:", "xdstp://a/t/p/*", "xdstp://a/t/p/a?x=1", "xdstp://b/t/p/a", "xdstp://a/u/p/a", "xdstp://a/t/p/%61"}

// garble changes a response in ways that no server should.
func (w *world) garble(r *wire.Response) {
	name := func() []byte {
		all := append(w.names(), oddNames...)
		return []byte(all[w.roll(len(all))])
	}
	for range w.roll(4) {
		switch op := w.roll(13); {
		case op == 0:
			r.Removed = append(r.Removed, name())
		case op == 1:
			r.RemovedNames = append(r.RemovedNames, wire.ResourceName{Name: name()})
		case op == 2:
			r.Errors = append(r.Errors, wire.ResourceError{ResourceName: wire.ResourceName{Name: name()}, Code: int32(w.roll(17)), Message: "odd"})
		case op == 3:
			r.Resources, r.Removed = nil, nil
		case op == 4:
			r.Resources = append(r.Resources, wire.Resource{Name: name(), TypeURL: []byte(w.types[w.roll(3)].URL), HasBody: w.roll(2) == 1})
		case len(r.Resources) == 0:
		default:
			w.garbleEntry(&r.Resources[w.roll(len(r.Resources))], op, name)
		}
	}
}

func (w *world) garbleEntry(e *wire.Resource, op int, name func() []byte) {
	switch op {
	case 5:
		e.Name = name()
	case 6:
		e.Payload = nil
	case 7:
		e.HasBody, e.Payload = false, nil
	case 8:
		e.TypeURL = []byte("type.googleapis.com/odd")
	case 9:
		e.HasTTL, e.TTL = true, []time.Duration{-1, 0, 1, 1 << 62}[w.roll(4)]
	case 10:
		e.Fault = errors.New("odd")
	case 11:
		e.Attributes = &wire.Attributes{Aliases: [][]byte{name(), name()}}
	case 12:
		e.Version = nil
	}
}
