package kit

import (
	"errors"
	"fmt"
	"strings"
)

// Scenario tells the server what the next streams are for, and so names the resources.
//
// Without authorities they have old-style names, and one server has all. With them
// resource i has an xdstp name; authorities have equally many resources, and servers
// equally many authorities, in the order of their numbers.
type Scenario struct {
	Variant, Type, Work string
	N, Eps              int
	Authorities         int // 0 for old-style names
	Servers             int // at least 1, at most MaxServers
	Glob                bool
	TTL                 int // seconds that every resource lives; 0 for no end
	Limit               int // of the bytes of a request that the server takes; 0 for none
}

// MaxServers is how many servers answer, each at a port of its own.
const MaxServers = 10

var errUneven = errors.New("resources do not divide evenly among authorities, or these among servers")

func (sc *Scenario) validate() error {
	switch per := max(1, sc.Authorities); {
	case sc.Servers < 1 || sc.Servers > MaxServers:
		return fmt.Errorf("%d servers: there are 1 to %d", sc.Servers, MaxServers)
	case sc.N%per != 0 || per%sc.Servers != 0:
		return errUneven
	case sc.Glob && sc.Authorities == 0:
		return errors.New("a glob is of an authority")
	case (sc.Servers > 1 || sc.Glob) && sc.Work != Load && sc.Work != Update && sc.Work != Heartbeat:
		return fmt.Errorf("workload %q is of named resources at one server", sc.Work)
	case sc.Servers > 1 && sc.Work != Load:
		return errors.New("several servers can be loaded from, nothing else")
	}
	return nil
}

// TypeURL of the resources.
func (sc *Scenario) TypeURL() string {
	if sc.Type == EDSType {
		return EDS
	}
	return CDS
}

// Name is the name of resource i. All names of a scenario have the same length.
func (sc *Scenario) Name(i int) string {
	if sc.Authorities == 0 {
		return Host(i)
	}
	return sc.folder(i*sc.Authorities/sc.N) + Host(i)
}

// folder is what the names of an authority begin with.
func (sc *Scenario) folder(authority int) string {
	_, typ, _ := strings.Cut(sc.TypeURL(), "/")
	return "xdstp://" + Authority(authority) + "/" + typ + "/p/"
}

// Names are what a client asks for: the resources, or the globs that hold them.
func (sc *Scenario) Names() (names []string) {
	if sc.Glob {
		for a := range sc.Authorities {
			names = append(names, sc.folder(a)+"*")
		}
		return names
	}
	for i := range sc.N {
		names = append(names, sc.Name(i))
	}
	return names
}

// ServerOf says at which server an authority is.
func (sc *Scenario) ServerOf(authority int) int { return authority * sc.Servers / sc.Authorities }

// Range says which resources are at a server.
func (sc *Scenario) Range(server int) (from, to int) {
	each := sc.N / sc.Servers
	return server * each, (server + 1) * each
}

// Subscriptions is how many names a client asks a server for, if it does not ask for all.
func (sc *Scenario) Subscriptions() int {
	if sc.Glob {
		return sc.Authorities / sc.Servers
	}
	return sc.N / sc.Servers
}

const authorityPrefix = "bench-"

// Authority is the name of an authority.
func Authority(number int) string { return fmt.Sprintf("%s%03d", authorityPrefix, number) }

const (
	hostPrefix = "svc-"
	hostSuffix = ".prod.svc.cluster.local"
	hostDigits = 8
)

// Host is an old-style name, and the end of an xdstp name. All have the same length.
func Host(i int) string { return fmt.Sprintf("%s%0*d%s", hostPrefix, hostDigits, i, hostSuffix) }

// Number is the part of a host's name that no other has.
func Number(host string) string {
	at := len(host) - len(hostSuffix)
	return host[at-hostDigits : at]
}

// Index finds the number of a resource by its name.
func Index(name string) int { return int(digits(Number(name))) }

func digits(s string) (n int64) {
	for i := range len(s) {
		n = n*10 + int64(s[i]-'0')
	}
	return n
}
