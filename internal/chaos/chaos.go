// Package chaos breaks a live client against a management server in every way that
// its authors could think of, and checks after each that
//
//   - what the program was told is what the server says,
//   - every subscription stands: a change of each resource arrives,
//   - nobody was told a lie: that something does not exist which does, that a value is
//     lost which is held, a value that the server never said, an older one after a newer, one twice,
//     the end of trouble that there was not; and nobody was told anything after it was stopped,
//   - what cannot be used is refused, to the server and in the metrics,
//   - nothing is left: no trouble that is over, no goroutine or file more than before the
//     first fault, nor heap that grows with the streams; and after the end of the client no
//     goroutine, file or memory more than before it.
//
// The server is a store of package testutil, which keeps to the protocol, in a process of its own,
// so that it can be killed and stopped. (test/real has the servers of others.) What happens follows
// from the seed; when it happens does not.
//
// What a client should hold at rest is said in one place, and compared with the events of watches,
// the client's dump and the requests that servers read (expect.go).
//
// A world has one server, or with -fallback two or three, of which each steps in for those before
// it (gRFC A71); the first of them does not answer for names of the authority. There is no other
// difference. Faults are one table (fault.go): what each needs and does, one action after the other,
// between which the program, the servers and the other faults go on. What they have done to a server
// is mended in one way. Each server has one fault at most at a time; where there are several servers,
// faults overlap. Each state of a resource that a server says has a revision of its own, so that a
// value tells who served it, and when. Whenever it is certain which servers can be reached, it is also
// checked that
//
//   - the first of them that answers for a name is the one whose word is held, and no other's is; where there is
//     none, that is told,
//   - it is asked for all such names that are wanted, and so is each server before it that reads
//     requests and does not answer yet; others are asked for none of them,
//   - each of its responses is answered,
//   - no server that is asked for nothing has a stream.
//
// The program has its client and its subscriptions, each with what it was told; a site has what a server
// says, its process, the way to it and the fault that lasts there; the host, in that process, has the store
// that serves and the server's mood. The world drives them. One goroutine does all that, and judges what
// the program was told: handlers and lookups leave that to it.
//
// TestLives is what does all this, for as long as its flags say.
package chaos

import (
	"testing"
	"time"
)

// The client's clocks. Keepalive is as short as gRPC lets it be.
const (
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 2 * time.Second
	connectTimeout   = time.Second
	resourceTimeout  = 15 * time.Second
)

// live is the life of a client in a world with these faults, and what it must not leave behind. It is seen
// at the end of each round that all is well again, and that nothing is left of what was broken.
func live(t testing.TB, seed uint64, v variant, from []fault, rounds int) *world {
	w := newWorld(t, seed, v)
	w.build()
	outside := w.use()
	if len(w.sites) == 1 { // spare servers have no fault for it
		w.program.config.Store = w.nextStore(whole)
	}
	w.program.open()
	for range 10 {
		w.program.step()
	}
	w.rest()
	heap, before := weigh(w.program.came.Load()), w.use()
	for range rounds {
		w.round(from)
		must(t, w.checkUse(before, spare))
	}
	must(t, eventually(leakPatience, func() error { return checkWeight(heap, weigh(w.program.came.Load()), lifeSlack) }))
	w.program.close()
	for _, s := range w.sites { // connections that were silenced do not notice their end
		s.proxy.Cut()
	}
	if err := w.checkUse(outside, 0); err != nil {
		t.Fatalf("after the end of the client: %v", err)
	}
	return w
}
