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
// default is the server's, and for Backoff. A bound of 0 in it is none.
func (c Config) withDefaults(of *Client) Config {
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
	if c.Transport == nil {
		if c.File.Logger == nil {
			c.File.Logger = c.Logger
		}
		c.GRPC.CredentialFiles, c.REST.CredentialFiles = of.hearing(c.GRPC.CredentialFiles), of.hearing(c.REST.CredentialFiles)
		c.Transport = file.NewBuilder(c.File, transport.ByServer{
			GRPC: transport.NewGRPC(c.GRPC), REST: transport.NewREST(c.REST),
		})
	}
	return c
}

// limit is what a field of [Config] asks for: the default for 0, and 0 for what is negative.
func limit[N int | int64 | time.Duration](field, byDefault N) N {
	return max(cmp.Or(field, byDefault), 0)
}
