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

	mu    sync.Mutex
	names map[[2]string]map[string]int // by the two authorities; how many watches ask for each
}

// take counts what a watch asks for because of the resource at a locator; nil if the program asks.
// release, of what is counted, takes it back.
func (f *foreign) take(table *authority.Table, by *xdstp.Locator, to xdstp.Locator, w *machine.Watch) (release func(), err error) {
	if f.most == 0 || by == nil || by.Scheme != xdstp.SchemeXDSTP {
		return nil, nil
	}
	pair := [2]string{by.Name.Authority, to.Name.Authority}
	if pair[0] == pair[1] || sameServers(table.Servers(pair[0]), table.Servers(pair[1])) {
		return nil, nil
	}
	name := w.Type.URL + " " + w.Name
	f.mu.Lock()
	defer f.mu.Unlock()
	names := f.names[pair]
	if names[name] == 0 && len(names) >= f.most {
		return nil, fmt.Errorf("%w: authority %q asks for more than %d of authority %q (Config.MaxForeignNames)", ErrForeignNames, pair[0], f.most, pair[1])
	}
	if names == nil {
		names = map[string]int{}
		f.names[pair] = names
	}
	names[name]++
	return func() { f.release(pair, name) }, nil
}

// sameServers says whether two lists are equal, and not empty. Those of the bootstrap are the same slice then.
func sameServers(a, b []bootstrap.ManagementServer) bool {
	return len(a) > 0 && len(b) > 0 && (&a[0] == &b[0] || slices.EqualFunc(a, b, func(x, y bootstrap.ManagementServer) bool {
		return x.URI == y.URI && x.Key() == y.Key()
	}))
}

func (f *foreign) release(pair [2]string, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := f.names[pair]
	if names[name]--; names[name] > 0 {
		return
	}
	if delete(names, name); len(names) == 0 {
		delete(f.names, pair)
	}
}
