package kit

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

// session is one run. It holds the names to its end, so that a client that keeps them too
// is not charged for the letters: a program has its names anyway.
type session struct {
	e     *Env
	r     *Result
	start func(*Env) (Client, error)

	control *control
	client  Client
	names   []string

	base       *snap // before the client existed
	goroutines int
}

func (s *session) prepare() (err error) {
	e := s.e
	sc := e.Scenario()
	if err := sc.validate(); err != nil {
		return err
	}
	if s.control, err = dialControl(e.Addr); err != nil {
		return err
	}
	if _, err := s.control.call(Op{Op: OpScenario, Scenario: *sc}); err != nil {
		return err
	}
	if e.TLS {
		if err := s.control.useTLS(&e.Config); err != nil {
			return err
		}
	}
	e.prepare()
	s.names = e.names()
	return nil
}

// load makes the client and has it subscribe; it measures until everything is there.
func (s *session) load() (err error) {
	s.r.BaseRSSMB = peakRSS()
	runtime.GC()
	runtime.GC()
	s.goroutines = runtime.NumGoroutine()
	s.base = begin()
	stop, err := s.e.profile("load")
	if err != nil {
		return err
	}
	defer stop()
	if s.client, err = s.start(s.e); err != nil || s.e.Work == Incr {
		return err
	}
	if err := s.subscribe(); err != nil {
		return err
	}
	if err := s.wait(s.e.loadedCh, func() string { return fmt.Sprintf("%d of %d loaded", s.e.loaded.Load(), s.e.target) }); err != nil {
		return err
	}
	s.r.setLoad(s.base, end())
	stop()
	st, err := s.control.call(Op{Op: OpStats, WaitAck: true})
	s.r.setLoadTraffic(st)
	if s.e.Work != Keep {
		s.heap()
	}
	return err
}

func (s *session) subscribe() error {
	if s.e.Work != Fanout {
		return s.client.Subscribe(s.names)
	}
	for w := range s.e.Watchers {
		if err := s.client.Watch(Host(0), w); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for a phase's end; its error says how far it came.
func (s *session) wait(ch <-chan struct{}, progress func() string) error {
	select {
	case <-ch:
		return nil
	case <-time.After(s.e.Wait):
		st, _ := s.control.call(Op{Op: OpStats})
		return fmt.Errorf("timeout: %s after %v; %d requests, %.0f MiB of requests so far", progress(), s.e.Wait, st.Reqs, mb(st.ReqBytes))
	}
}

func (s *session) heap() {
	heap, stacks := settled()
	held := heap - float64(s.base.m.HeapAlloc)
	s.r.StackMB = (stacks - float64(s.base.m.StackInuse)) / mib
	per := float64(s.e.target)
	s.r.HeapMB, s.r.HeapPerRes = held/mib, held/per
	s.r.Goroutines = runtime.NumGoroutine() - s.goroutines
}

// measure measures the phase after the load.
func (s *session) measure() error {
	if _, err := s.control.call(Op{Op: OpReset}); err != nil {
		return err
	}
	s.e.callbacks.Store(0)
	stop, err := s.e.profile("measure")
	if err != nil {
		return err
	}
	defer stop()
	from := begin()
	if s.e.Work == Keep {
		from = s.base
	}
	wall, err := s.work(from)
	if err != nil {
		return err
	}
	to := end()
	stop()
	s.r.MS, s.r.CPUMS = ms(wall), ms(to.cpu-from.cpu)
	s.r.AllocMB, s.r.Allocs = from.allocated(to)
	s.r.Callbacks = s.e.callbacks.Load()
	if err := s.latencies(); err != nil {
		return err
	}
	st, err := s.control.call(Op{Op: OpStats, WaitAck: true})
	s.r.setTraffic(st)
	if s.e.Work == Incr {
		s.heap()
	}
	return err
}

// work does the workload's second half and says how long it took.
func (s *session) work(from *snap) (time.Duration, error) {
	var err error
	switch s.e.Work {
	case Update, Fanout:
		err = s.changes(Op{Op: OpUpdate, U: s.e.Updates})
	case Reconnect:
		err = s.changes(Op{Op: OpKill})
	case Incr:
		err = s.oneByOne()
		return time.Since(from.t), err
	case Heartbeat:
		err = s.heartbeats()
		return time.Since(from.t), err
	case Cancel:
		err = s.cancel()
		return time.Since(from.t), err
	case Keep:
		s.client.Close()
		return time.Since(from.t), nil
	default:
		err = fmt.Errorf("no workload %q", s.e.Work)
	}
	return time.Duration(s.e.finishedAt.Load() - from.t.UnixNano()), err
}

func (s *session) changes(op Op) error {
	if _, err := s.control.call(op); err != nil {
		return err
	}
	return s.wait(s.e.doneCh, func() string { return fmt.Sprintf("%d of %d updates", s.e.finished.Load(), len(s.e.lat)) })
}

// heartbeats waits until the client has acknowledged all of them. No callback tells.
func (s *session) heartbeats() error {
	if _, err := s.control.call(Op{Op: OpUpdate, U: s.e.Updates}); err != nil {
		return err
	}
	_, err := s.control.call(Op{Op: OpIdle, WaitMS: int(s.e.Wait.Milliseconds())})
	return err
}

// oneByOne subscribes to each name when the one before is there.
func (s *session) oneByOne() error {
	limit := time.NewTimer(s.e.Wait)
	for i, name := range s.names {
		t := time.Now()
		if err := s.client.Watch(name, 0); err != nil {
			return err
		}
		select {
		case <-s.e.incrCh:
		case <-limit.C:
			return fmt.Errorf("timeout: %d of %d subscribed after %v", i, s.e.N, s.e.Wait)
		}
		s.e.lat[i] = int64(time.Since(t))
	}
	return nil
}

// cancel cancels all watches but the last, and waits until the server knows.
func (s *session) cancel() error {
	for _, name := range s.names[:len(s.names)-1] {
		if err := s.client.Cancel(name); err != nil {
			return err
		}
	}
	_, err := s.control.call(Op{Op: OpAwait, U: 1, WaitMS: int(s.e.Wait.Milliseconds())})
	return err
}

func (s *session) latencies() error {
	if s.e.Bin != "" {
		var b []byte
		for _, l := range s.e.lat {
			b = binary.LittleEndian.AppendUint64(b, uint64(l))
		}
		if err := os.WriteFile(s.e.Bin, b, 0o644); err != nil {
			return err
		}
	}
	l := slices.Sorted(slices.Values(s.e.lat))
	at := func(percent int) float64 { return float64(l[min(len(l)-1, len(l)*percent/100)]) / 1e3 }
	s.r.P50US, s.r.P99US = at(50), at(99)
	return nil
}
