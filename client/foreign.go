package client

import (
	"errors"
	"fmt"
	"sync"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/xdstp"
)

// defaultMaxForeignNames is what one authority may ask of another where the program does not say.
const defaultMaxForeignNames = 10_000

// ErrForeignNames says that the resources of one authority lead, by redirects and list
// collections, to more names of another than [Config.MaxForeignNames]. Its kind is [ErrorData].
var ErrForeignNames = errors.New("xds: the resources of one authority lead to too many names of another")

// foreign counts the names that the resources of each authority ask of each other one, at other
// servers: one control plane cannot make the client ask more of another than that takes.
type foreign struct {
	most int // 0 for no bound

	mu    sync.Mutex
	names map[[2]string]map[string]int // by the two authorities; how many watches ask for each
}

// loan is a name that one authority asks of another; nil for one that is not counted.
type loan struct {
	of   *foreign
	pair [2]string
	name string
}

// take counts what a watch asks for because of a resource that a locator named.
func (f *foreign) take(v *view, from, to xdstp.Locator, w *machine.Watch) (*loan, error) {
	pair := [2]string{from.Name.Authority, to.Name.Authority}
	if f.most == 0 || from.Scheme != xdstp.SchemeXDSTP || pair[0] == pair[1] ||
		sameServers(v.table.Servers(pair[0]), v.table.Servers(pair[1])) {
		return nil, nil
	}
	l := &loan{f, pair, w.Type.URL + " " + w.Name}
	f.mu.Lock()
	defer f.mu.Unlock()
	names := f.names[pair]
	if names[l.name] == 0 && len(names) >= f.most {
		return nil, fmt.Errorf("%w: authority %q asks for more than %d of authority %q (Config.MaxForeignNames)", ErrForeignNames, pair[0], f.most, pair[1])
	}
	if names == nil {
		names = map[string]int{}
		f.names[pair] = names
	}
	names[l.name]++
	return l, nil
}

// sameServers says whether two lists of a table are one: equal lists are.
func sameServers(a, b []bootstrap.ManagementServer) bool {
	return len(a) > 0 && len(b) > 0 && &a[0] == &b[0]
}

// end takes it back.
func (l *loan) end() {
	if l == nil {
		return
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	names := l.of.names[l.pair]
	if names[l.name]--; names[l.name] > 0 {
		return
	}
	if delete(names, l.name); len(names) == 0 {
		delete(l.of.names, l.pair)
	}
}
