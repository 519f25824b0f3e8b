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

// hearOfFile keeps and logs a report of a connection.
func (c *Client) hearOfFile(r transport.FileReport) {
	key := [2]string{r.Key, r.Path}
	c.files.mu.Lock()
	_, was := c.files.all[key]
	if r.Err == nil || errors.Is(r.Err, transport.ErrClosed) {
		delete(c.files.all, key)
	} else {
		c.files.all[key] = r
	}
	_, is := c.files.all[key]
	c.files.mu.Unlock()
	switch {
	case is:
		c.engine.Say(slog.LevelWarn, "a file of the credentials has gone bad; what was read of it before stays in use", r.Server, "path", r.Path, "error", r.Err.Error())
	case was && r.Err == nil:
		c.engine.Say(slog.LevelInfo, "a file of the credentials is good again", r.Server, "path", r.Path)
	}
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
		c.hearOfFile(r)
		call(c, "CredentialFiles panicked", r.Server, own, r)
	}
}
