package ratelimit_test

import (
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/src/stats"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/examples/integrations/ratelimit"
)

// What README.md quotes of this function compiles; TestService shows what it does.
var _ = provide

func provide(statsManager stats.Manager, settings settings.Settings) (*ratelimit.Provider, error) {
	boot, err := bootstrap.Load("bootstrap.json") // servers, TLS, node, headers
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		return nil, err
	}
	p, err := ratelimit.New(c, statsManager, settings)
	return p, err
}
