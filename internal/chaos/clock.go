package chaos

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// clockStep is more than what is left of a token, and than how long certificates are good
// already.
const clockStep = 90 * time.Minute

// began tells the time by the monotonic clock, whatever the wall clock is set to.
var began = time.Now()

// setClock sets the machine's clock to some time off, or right.
func setClock(offset time.Duration) error {
	tv := syscall.NsecToTimeval(began.Add(time.Since(began) + offset).UnixNano())
	return syscall.Settimeofday(&tv)
}

func clockOff(offset time.Duration) action {
	return func(s *site) {
		s.log.Printf("the clock is %v off", offset)
		s.t.Cleanup(func() { _ = setClock(0) }) // where it goes wrong; else it is right by then
		must(s.t, setClock(offset))
	}
}

// rightOnInterrupt has an interrupt set the clock right before the process ends.
func rightOnInterrupt() {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	go func() {
		<-interrupt
		_ = setClock(0) // if that fails it could not be set before
		os.Exit(1)
	}()
}
