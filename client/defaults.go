package client

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/transport/file"
)

// What the client does where the program does not say; the defaults of the backoff are the engine's.
const (
	defaultResourceTimeout = 15 * time.Second // DNE-1
	transientTimeout       = 30 * time.Second // gRFC A88
	defaultLinger          = 500 * time.Millisecond
	defaultMaxResourceSize = 16 << 20 // bytes
	defaultMaxHeldSize     = 4 << 30
	defaultMaxForeignNames = 10_000
	defaultHandlerTimeout  = 5 * time.Second
	defaultGetIdle         = time.Minute
	defaultGetMaxNames     = 10_000
)

// withDefaults is the configuration with all that the client uses set, as its own: but for ResourceTimeout, whose
// default is the server's, for Backoff and for Transport. A bound of 0 in it is none.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Linger = cmp.Or(c.Linger, defaultLinger)
	c.MaxResourceSize = limit(c.MaxResourceSize, defaultMaxResourceSize)
	c.MaxHeldSize = limit(c.MaxHeldSize, defaultMaxHeldSize)
	c.MaxForeignNames = limit(c.MaxForeignNames, defaultMaxForeignNames)
	c.HandlerTimeout = limit(c.HandlerTimeout, defaultHandlerTimeout)
	c.GetIdle = limit(c.GetIdle, defaultGetIdle)
	c.GetMaxNames = limit(c.GetMaxNames, defaultGetMaxNames)
	c.Deletions = maps.Clone(c.Deletions)
	c.Guards = maps.Clone(c.Guards)
	c.StoreTypes = slices.Clone(c.StoreTypes)
	for url, guards := range c.Guards {
		c.Guards[url] = slices.DeleteFunc(slices.Clone(guards), func(g Guard) bool { return g == nil })
	}
	if c.File.Logger == nil {
		c.File.Logger = c.Logger
	}
	return c
}

// newTransport makes the transport where the program has none of its own.
func (c *Client) newTransport() transport.Builder {
	grpc, rest := c.config.GRPC, c.config.REST
	grpc.CredentialFiles, rest.CredentialFiles = c.hearing(grpc.CredentialFiles), c.hearing(rest.CredentialFiles)
	return file.NewBuilder(c.config.File, transport.ByServer{GRPC: transport.NewGRPC(grpc), REST: transport.NewREST(rest)})
}

// limit is what a field of [Config] asks for: the default for 0, and 0 for what is negative.
func limit[N int | int64 | time.Duration](field, byDefault N) N {
	return max(cmp.Or(field, byDefault), 0)
}
