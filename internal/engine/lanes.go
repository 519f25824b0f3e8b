package engine

import (
	"sync"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// lanes are those of an engine.
type lanes struct {
	dispatch func(*lane)                           // of each: on a goroutine
	decode   func(*machine.Notice, *machine.Watch) // of each

	mu  sync.RWMutex // of all: the loop adds to it, and others look at it
	all []*lane      // by number; nil of one that nothing is told in

	// Owned by the loop.
	guests bool    // a watch was started that is told in a lane of another source
	found  []*lane // of told, used again
}

// of finds the lane of a source, or makes it.
func (ls *lanes) of(number int32) *lane {
	if int(number) < len(ls.all) && ls.all[number] != nil {
		return ls.all[number]
	}
	l := &lane{number: int(number), dispatch: ls.dispatch, decode: ls.decode}
	l.wake = sync.NewCond(&l.mu)
	ls.mu.Lock()
	if missing := int(number) + 1 - len(ls.all); missing > 0 {
		ls.all = append(ls.all, make([]*lane, missing)...)
	}
	ls.all[number] = l
	ls.mu.Unlock()
	return l
}

// at finds a lane from outside the loop; nil if there is none.
func (ls *lanes) at(number int32) *lane {
	ls.mu.RLock()
	defer ls.mu.RUnlock()
	if int(number) >= len(ls.all) {
		return nil
	}
	return ls.all[number]
}

// begin notes that a watch begins, and returns its lane.
func (ls *lanes) begin(w *machine.Watch) *lane {
	ls.guests = ls.guests || w.Lane != w.Source
	return ls.of(w.Lane)
}

func (ls *lanes) close() {
	for _, l := range ls.all {
		if l != nil {
			l.close()
		}
	}
}

// told lists the lanes of a notice's watches: one, or two if the watches of the name
// and those of the type belong to different authorities; more only where there are guests.
// The list is good until the next call.
func (ls *lanes) told(n *machine.Notice) []*lane {
	found := ls.found[:0]
	if ls.guests {
		for _, w := range n.To {
			found = with(found, ls.of(w.Lane))
		}
		for _, w := range n.All {
			found = with(found, ls.of(w.Lane))
		}
	} else {
		if len(n.To) > 0 {
			found = append(found, ls.of(n.To[0].Lane))
		}
		if len(n.All) > 0 {
			found = with(found, ls.of(n.All[0].Lane))
			found = with(found, ls.of(n.All[len(n.All)-1].Lane)) // the wildcard's are behind a glob's
		}
	}
	ls.found = found
	return found
}

// run is how many notices take one place in a lane: the first, and after it updates from the
// same stream and of the same type that are for the same lane alone.
func (ls *lanes) run(notices []machine.Notice) int {
	first, run := &notices[0], 1
	told := ls.told(first)
	if len(told) != 1 || first.Trouble {
		return run
	}
	own := told[0] // the list is good until the next call
	for ; run < len(notices); run++ {
		n := &notices[run]
		if n.Kind != machine.NoticeUpdated || n.Trouble || n.Stream != first.Stream || n.TypeURL != first.TypeURL {
			break
		}
		if told = ls.told(n); len(told) != 1 || told[0] != own {
			break
		}
	}
	return run
}
