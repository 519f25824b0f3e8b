package client

import (
	"fmt"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// Guard judges a response as a whole before the client applies any of it: Envoy's
// config_validators, as code of the program. If it returns an error the client refuses the
// response: it keeps what it holds and sends a NACK with the error's text. The watches of
// resources that the response would have changed or removed, and of a wildcard whose first state
// it would be, get an error of kind [ErrorRejected] that wraps it; [Client.Dump] and the gauges
// show it. The client judges the next response anew; a Secret in it that was refused for its
// files counts as changed again. The client drops a response whose stream ends before it was
// judged: the next stream brings it again. It does not judge a response whose resources are all
// subscribed to at another server by the time it is decoded.
//
// A guard also judges what a server's silence would end: in delta, members of a collection that
// the client did not name to the server, since another server gave them or there were too many,
// and that the server does not send. If it returns an error the client keeps them, logs that,
// and looks for them again on the next stream. The end of a time to live is not judged.
//
// A guard is called like the functions of [Trace]: one at a time for each server, and while it
// runs events wait. It runs after the handlers of the first authority that is watched at the
// server, so the answer to the response waits for those too. It may call any method of the
// client that a handler may. A guard that panics refuses the response.
type Guard func(*Proposal) error

// Proposal is what a response, or a server's silence, would change. Responses of several
// streams, such as those of different scopes, have a Proposal each. The guard may keep it, and must not
// change it: the guards of a type share it.
type Proposal struct {
	Type    string // URL
	Server  string // URI, as in [Event]
	Version string // of the response; often empty in delta, and for silence
	// Held is how many resources of the type the stream has, for all authorities that share it,
	// and Left how many it would have afterwards. A resource counts once, by however many aliases it is watched,
	// and not at all where its deletion was accepted and it is kept for the grace of [DeletionAfter] alone.
	Held, Left int
	// Changed are the resources that would have a first or another value; also a Secret if files
	// that it refers to have changed, where the transport looks at them.
	Changed []Change
	// Removed are the names that would be removed, in order, at once or after the grace of
	// [DeletionAfter]; none where deletions are ignored (gRFC A53).
	Removed []string
	// Invalid is how many entries the client refuses in any case, each once for every watched
	// name of it.
	Invalid int
}

// Change is a new value of a resource.
type Change struct {
	Name  string // canonical
	New   bool   // the client holds none
	Value any    // shared, read only; of a type that is watched lazily use [resource.Decoded]
	Raw   []byte // its bytes as received; shared, read only
}

// MinResources refuses a response after which the client would hold fewer than n resources, such
// as an empty list of Clusters by mistake. It is made for collections: if resources are watched
// by name, their number is up to the program, and a server may send them in several responses. An n of 0
// or less refuses nothing.
func MinResources(n int) Guard {
	return func(p *Proposal) error {
		if p.Left >= n {
			return nil
		}
		return fmt.Errorf("the response would leave %d resources, and at least %d are wanted", p.Left, n)
	}
}

// MaxShrink refuses a response that would remove more than a fraction of the resources: with
// 0.5, more than half. New resources make up for removed ones. A fraction of 1 or more refuses nothing, 0
// any loss. Where the client holds nothing yet it refuses nothing.
func MaxShrink(fraction float64) Guard {
	return func(p *Proposal) error {
		if float64(p.Held-p.Left) <= fraction*float64(p.Held) {
			return nil
		}
		return fmt.Errorf("the response would leave %d of %d resources, which is a loss of more than %.4g %%", p.Left, p.Held, fraction*100)
	}
}

// judge asks the guards of a type.
func (c *Client) judge(p *machine.Proposal) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.panicked("a guard panicked; the response is refused", c.uri(p.Server), p.TypeURL, v)
			err = fmt.Errorf("the guard panicked: %s", panicText(v))
		}
	}()
	out := &Proposal{
		Type: p.TypeURL, Server: c.uri(p.Server), Version: p.Version,
		Held: p.Held, Left: p.Left, Removed: p.Removed, Invalid: p.Invalid, Changed: make([]Change, len(p.Changed)),
	}
	for i, ch := range p.Changed {
		out.Changed[i] = Change(ch)
	}
	for _, guard := range c.config.Guards[p.TypeURL] {
		// U-2: the refusal is told, as the error of the response.
		if err := guard(out); err != nil {
			return err
		}
	}
	return nil
}
