package client

// spelled is a handler of a watch whose name was spelled otherwise than its canonical form.
type spelled struct {
	caller
	name string
}

// spelling gives the events of a watch the name that it asked for; canonical is what they have.
func spelling(h caller, name, canonical string) caller {
	if name == canonical {
		return h
	}
	return spelled{h, name}
}

func (s spelled) call(ev Event[any]) {
	// U-11: as the program wrote it.
	ev.Asked = s.name
	s.caller.call(ev)
}

func (s spelled) callAll(r *round) {
	s.call(*r.event)
	r.called()
}

// spellingAll gives the events of a collection as a whole the name that it was asked for by.
func spellingAll(h BatchHandler[any], name, canonical string) BatchHandler[any] {
	if name == canonical {
		return h
	}
	return func(b Batch[any]) {
		for i := range b.Events {
			if b.Events[i].Name == canonical {
				b.Events[i].Asked = name
			}
		}
		h(b)
	}
}
