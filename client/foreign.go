package client

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// ErrForeignNames says that the resources of one authority lead, by redirects and list
// collections, to more names of another than [Config.MaxForeignNames]. Its kind is [ErrorData].
var ErrForeignNames = errors.New("xds: the resources of one authority lead to too many names of another")

// foreign counts the names that resources of one authority make the client request from the servers of another, for
// each two authorities, so that one control plane cannot overload another through the client.
type foreign struct {
	most int // 0 for no bound

	mu      sync.Mutex
	names   map[authorities]map[string]int // how many watches ask for each
	watches map[*machine.Watch]authorities // those that are counted
}

// authorities are that whose resources lead to a name, and that of the name.
type authorities struct{ by, to string }

// take counts what a watch asks for because of the resource at a locator; nil if the program asks.
func (f *foreign) take(table *authority.Table, by *xdstp.Locator, to xdstp.Locator, w *machine.Watch) error {
	if f.most == 0 || by == nil || by.Scheme != xdstp.SchemeXDSTP {
		return nil
	}
	pair := authorities{by.Name.Authority, to.Name.Authority}
	if pair.by == pair.to || sameServers(table.Servers(pair.by), table.Servers(pair.to)) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	names, name := f.names[pair], foreignName(w)
	if names[name] == 0 && len(names) >= f.most {
		return fmt.Errorf("%w: authority %q asks for more than %d of authority %q (Config.MaxForeignNames)", ErrForeignNames, pair.by, f.most, pair.to)
	}
	if names == nil {
		names = map[string]int{}
		f.names[pair] = names
	}
	names[name]++
	f.watches[w] = pair
	return nil
}

func foreignName(w *machine.Watch) string { return w.Type.URL + " " + w.Name }

// sameServers says whether two lists are equal, and not empty. Those of the bootstrap are the same slice then.
func sameServers(a, b []bootstrap.ManagementServer) bool {
	return len(a) > 0 && len(b) > 0 && (&a[0] == &b[0] || slices.EqualFunc(a, b, func(x, y bootstrap.ManagementServer) bool {
		return x.URI == y.URI && x.Key() == y.Key()
	}))
}

// release is the end of a watch, which may be counted.
func (f *foreign) release(w *machine.Watch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pair, counted := f.watches[w]
	if !counted {
		return
	}
	delete(f.watches, w)
	names, name := f.names[pair], foreignName(w)
	if names[name]--; names[name] > 0 {
		return
	}
	if delete(names, name); len(names) == 0 {
		delete(f.names, pair)
	}
}
