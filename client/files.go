package client

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/xdswatch/xdswatch/transport"
)

// badFiles are the files of credentials that have gone bad while a connection exists. Safe for
// concurrent use.
type badFiles struct {
	mu  sync.Mutex
	all map[[2]string]transport.FileReport // by the server's key and the path
}

// note keeps a report of a connection, and says whether the file was bad and is now.
func (b *badFiles) note(r transport.FileReport) (was, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := [2]string{r.Key, r.Path}
	_, was = b.all[key]
	if is = r.Err != nil && !errors.Is(r.Err, transport.ErrClosed); is {
		b.all[key] = r
	} else {
		delete(b.all, key)
	}
	return was, is
}

// reports lists them by server and path. What two servers of one URI say of a path is one.
func (b *badFiles) reports() (all []transport.FileReport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	byPlace := func(a, b transport.FileReport) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Path, b.Path))
	}
	all = slices.SortedFunc(maps.Values(b.all), func(a, b transport.FileReport) int {
		return cmp.Or(byPlace(a, b), cmp.Compare(a.Key, b.Key))
	})
	return slices.CompactFunc(all, func(a, b transport.FileReport) bool { return byPlace(a, b) == 0 })
}

// hearing makes the hook of a transport of the client's and of the program's own.
func (c *Client) hearing(own func(transport.FileReport)) func(transport.FileReport) {
	return func(r transport.FileReport) {
		switch was, is := c.files.note(r); {
		case is:
			c.engine.Say(slog.LevelWarn, "a file of the credentials has gone bad; what was read of it before stays in use", r.Server, "path", r.Path, "error", r.Err.Error())
		case was && r.Err == nil:
			c.engine.Say(slog.LevelInfo, "a file of the credentials is good again", r.Server, "path", r.Path)
		}
		call(c, "CredentialFiles panicked", r.Server, own, r)
	}
}
