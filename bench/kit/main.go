package kit

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
)

// Main runs the workload that the flags name and prints a [Result] as one line of JSON.
// na says why a configuration cannot be run, "" if it can.
func Main(driver string, na func(*Config) string, start func(*Env) (Client, error)) {
	e := &Env{}
	e.flags(flag.CommandLine)
	name := flag.String("name", driver, "driver name in the output")
	flag.Parse()
	if e.Work == Fanout {
		e.N = 1
	}
	r := newResult(*name, &e.Config)
	if why := na(&e.Config); why != "" {
		r.NA = why
	} else if err := e.run(r, start); err != nil {
		r.Err = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		os.Exit(1)
	}
	os.Exit(0) // not waiting for what the client has running
}

func (e *Env) run(r *Result, start func(*Env) (Client, error)) error {
	runtime.MemProfileRate = 0
	if e.MemProf != "" {
		runtime.MemProfileRate = 64 << 10
	}
	s := &session{e: e, r: r, start: start}
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.load(); err != nil {
		return err
	}
	if e.Work != Load {
		if err := s.measure(); err != nil {
			return err
		}
	}
	r.PeakRSSMB = peakRSS()
	err := e.writeMemProfile()
	runtime.KeepAlive(s)
	return err
}
