package client

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/machine"
)

// Guard judges a response as a whole before anything of it is taken: Envoy's
// config_validators, as code of the program. With an error the response is refused: what is
// held stays as it is, the server is told by a NACK with the error's text, and the watches of
// resources that it would have changed or removed, and of a wildcard whose first state it would
// be, hear of an error of kind [ErrorRejected] that wraps it; so say [Client.Dump] and the gauges. The next response is judged anew; one
// that holds a Secret which was refused for its files has it changed again. A response whose
// stream ends before it was judged is not taken: the next stream brings it again. One whose
// resources are all asked of another server by the time it is decoded is not judged.
//
// What silence would end is judged too: in delta, members of a collection that the server was
// not told of, since another one gave them or there were too many, and does not speak of. With
// an error they stay, which is logged, and are looked for anew on the next stream. A time to
// live that runs out is not judged.
//
// A guard is called like the functions of [Trace]: one at a time for each server, and while
// it runs events wait. It runs behind the handlers of the first authority that is watched at
// the server, so the answer to the response waits for those too. It may call anything of the
// client that a handler may. One that panics refuses.
type Guard func(*Proposal) error

// Proposal is what a response would do, or silence. Of responses of several streams, such as
// those of different scopes, each is its own matter.
type Proposal struct {
	Type    string // URL
	Server  string // URI
	Version string // of the response; often empty in delta, and for silence
	// Held is how many resources of the type are held on the stream, those of all
	// authorities that share it, and Left how many would be.
	Held, Left int
	// Changed are the resources that would have another value, or their first. A Secret is
	// one too if files that it refers to have changed, where the transport looks at them.
	Changed []Change
	// Removed are the names that would go, in order, at once or after the grace of
	// [DeletionAfter]. Where deletions are ignored (gRFC A53) none does.
	Removed []string
	// Invalid is how many entries are refused in any case, each once for every watched name of it.
	Invalid int
}

// Change is a new value of a resource.
type Change struct {
	Name  string // canonical
	New   bool   // none is held
	Value any    // shared, read only
	Raw   []byte // its bytes as received; shared, read only
}

// MinResources refuses a response after which fewer than n resources would be held, such as
// an empty list of Clusters that is due to a mistake. It is made for collections: where
// resources are watched by name their number is the program's own doing, and a server may
// send them in several responses.
func MinResources(n int) Guard {
	return func(p *Proposal) error {
		if p.Left >= n {
			return nil
		}
		return fmt.Errorf("the response would leave %d resources, and at least %d are wanted", p.Left, n)
	}
}

// MaxShrink refuses a response after which more than a fraction of the resources would be
// gone: with 0.5, more than half. New ones make up for those that go.
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
			c.panicked("a guard panicked; the response is refused", c.server(p.Server).URI, p.TypeURL, v)
			err = fmt.Errorf("the guard panicked: %s", panicText(v))
		}
	}()
	out := &Proposal{
		Type: p.TypeURL, Server: c.server(p.Server).URI, Version: p.Version,
		Held: p.Held, Left: p.Left, Removed: p.Removed, Invalid: p.Invalid, Changed: make([]Change, len(p.Changed)),
	}
	for i, ch := range p.Changed {
		out.Changed[i] = Change(ch)
	}
	for _, guard := range c.config.Guards[p.TypeURL] {
		if err := guard(out); err != nil {
			return err
		}
	}
	return nil
}

// shortTypes are the usual abbreviations of Envoy's types.
var shortTypes = map[string]string{
	"lds": "envoy.config.listener.v3.Listener", "rds": "envoy.config.route.v3.RouteConfiguration",
	"srds": "envoy.config.route.v3.ScopedRouteConfiguration", "vhds": "envoy.config.route.v3.VirtualHost",
	"cds": "envoy.config.cluster.v3.Cluster", "eds": "envoy.config.endpoint.v3.ClusterLoadAssignment",
	"leds": "envoy.config.endpoint.v3.LbEndpoint", "sds": "envoy.extensions.transport_sockets.tls.v3.Secret",
	"rtds": "envoy.service.runtime.v3.Runtime", "ecds": "envoy.config.core.v3.TypedExtensionConfig",
}

// guardFaults are the keys of Config.Guards that are no URL of a type, and would guard nothing.
func guardFaults(guards map[string][]Guard) error {
	const prefix = "type.googleapis.com/"
	var faults []error
	for _, url := range slices.Sorted(maps.Keys(guards)) {
		host, name, ok := strings.Cut(url, "/")
		if ok && host != "" && protoreflect.FullName(name).IsValid() {
			continue
		}
		hint := ""
		if long, ok := shortTypes[strings.ToLower(url)]; ok {
			name = long
		} else if name = strings.TrimLeft(url, "/"); !strings.Contains(name, ".") {
			name = ""
		}
		if protoreflect.FullName(name).IsValid() {
			hint = fmt.Sprintf("; did you mean %q?", prefix+name)
		}
		faults = append(faults, fmt.Errorf("xds: Config.Guards: %q is no type URL%s", url, hint))
	}
	return errors.Join(faults...)
}
