package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// server is what all streams and control connections share. A scenario has one stream at
// each of its servers.
type server struct {
	cert string

	mu        sync.Mutex
	moved     *sync.Cond // streams, what they owe, pending or watched changed
	scenario  kit.Scenario
	resources *canned
	key       kit.Scenario // of the resources
	commands  chan command // of the newest stream; nil before it
	streams   map[*stream]bool
	stats     kit.Stats
	cpu       time.Duration // when stats was empty
	pending   int           // of what was commanded, not sent
	watched   int           // names subscribed (cancel)
	seq       int
}

// command is what a stream is to do.
type command struct {
	updates int
	kill    bool
}

func newServer(cert string) *server {
	s := &server{cert: cert}
	s.moved = sync.NewCond(&s.mu)
	return s
}

func cpuTime() time.Duration {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru) // it fails for a bad argument only
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func (s *server) acceptControl(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go s.control(c)
	}
}

func (s *server) control(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	w := json.NewEncoder(c)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var op kit.Op
		var st kit.Stats
		if err := json.Unmarshal(line, &op); err != nil {
			st.Err = err.Error()
		} else {
			st = s.do(op)
		}
		if w.Encode(st) != nil {
			return
		}
	}
}

func (s *server) do(op kit.Op) (st kit.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch op.Op {
	case kit.OpScenario:
		s.begin(op.Scenario)
	case kit.OpReset:
		s.reset()
	case kit.OpCert:
		st.Cert = s.cert
	case kit.OpUpdate, kit.OpKill:
		if s.commands == nil {
			st.Err = "no stream"
			break
		}
		s.pending = op.U
		s.commands <- command{updates: op.U, kill: op.Op == kit.OpKill} // there is room for one
	case kit.OpAwait:
		if !s.await(time.Duration(op.WaitMS)*time.Millisecond, func() bool { return s.watched <= op.U }) {
			st.Err = "timeout: the names are still subscribed"
		}
	case kit.OpIdle:
		if !s.await(time.Duration(op.WaitMS)*time.Millisecond, func() bool { return s.pending == 0 && s.settled() }) {
			st.Err = fmt.Sprintf("timeout: %d rounds are not sent, or the last is not acknowledged", s.pending)
		}
	case kit.OpStats:
		if op.WaitAck && !s.await(5*time.Second, s.settled) {
			for t := range s.streams {
				t.owed = 0
			}
		}
		st = s.stats
		st.CPUMS = float64(cpuTime()-s.cpu) / 1e6
	default:
		st.Err = "no op " + op.Op
	}
	return st
}

// settled says whether every response was acknowledged; with the lock.
func (s *server) settled() bool {
	for t := range s.streams {
		if t.owed > 0 {
			return false
		}
	}
	return true
}

// await waits, with the lock, until something is so.
func (s *server) await(limit time.Duration, so func() bool) bool {
	deadline := time.Now().Add(limit)
	defer time.AfterFunc(limit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.moved.Broadcast()
	}).Stop()
	for !so() {
		if !time.Now().Before(deadline) {
			return false
		}
		s.moved.Wait()
	}
	return true
}

// begin makes the resources of a scenario, or makes those at hand new again.
func (s *server) begin(sc kit.Scenario) {
	key := sc
	key.Work, key.Servers, key.Glob, key.Limit = "", 1, false, 0
	if key.Type != kit.EDSType {
		key.Eps = 0
	}
	if s.resources == nil || s.key != key {
		s.resources = nil
		debug.FreeOSMemory()
		s.resources, s.key = build(&sc), key
		debug.FreeOSMemory()
		log.Printf("%+v: resource %d bytes, entry %d, all %.1f MiB", key, s.resources.single, s.resources.size, float64(len(s.resources.arena))/(1<<20))
	} else {
		for i := range sc.N {
			s.resources.change(i, []byte(kit.ZeroStamp))
		}
	}
	s.scenario, s.commands, s.streams, s.seq, s.pending, s.watched = sc, nil, map[*stream]bool{}, 0, 0, 0
	s.reset()
}

func (s *server) reset() { s.stats, s.cpu = kit.Stats{}, cpuTime() }
