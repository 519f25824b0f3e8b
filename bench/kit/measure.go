package kit

import (
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const mib = 1 << 20

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func mb(bytes int64) float64 { return float64(bytes) / mib }

// snap is the state of the process at one moment.
type snap struct {
	t   time.Time
	cpu time.Duration
	m   runtime.MemStats
}

// cpuTime is what the process has used, user and system.
func cpuTime() time.Duration {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru) // it fails for a bad argument only
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// begin reads the clocks last, so that a phase that begins does not pay for reading the
// heap.
func begin() *snap {
	s := &snap{}
	runtime.ReadMemStats(&s.m)
	s.cpu, s.t = cpuTime(), time.Now()
	return s
}

// end reads the clocks first.
func end() *snap {
	s := &snap{t: time.Now(), cpu: cpuTime()}
	runtime.ReadMemStats(&s.m)
	return s
}

// allocated is what came since, in MiB and in objects.
func (s *snap) allocated(to *snap) (mib, objects float64) {
	return mb(int64(to.m.TotalAlloc - s.m.TotalAlloc)), float64(to.m.Mallocs - s.m.Mallocs)
}

// peakRSS in MiB.
func peakRSS() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// settled is the live heap and the stacks, in bytes.
func settled() (heap, stacks float64) {
	// What trails the last callback, the ACK and pooled buffers, is to be over; the third
	// collection takes the last of a sync.Pool.
	time.Sleep(20 * time.Millisecond)
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}

// profile starts the CPU profile if it is to cover the phase; stop ends it.
func (c *Config) profile(phase string) (stop func(), err error) {
	if c.CPUProf == "" || c.Phase != phase {
		return func() {}, nil
	}
	w, err := os.Create(c.CPUProf)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = w.Close() // a profile that is cut short says so when it is read
	}, nil
}

func (c *Config) writeMemProfile() error {
	if c.MemProf == "" {
		return nil
	}
	w, err := os.Create(c.MemProf)
	if err != nil {
		return err
	}
	defer w.Close()
	return pprof.Lookup("heap").WriteTo(w, 0)
}
