// Package ratelimit gives envoyproxy/ratelimit its configuration over xDS.
package ratelimit

import (
	"context"
	"fmt"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/provider"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/src/stats"
	gostats "github.com/lyft/gostats"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/watcher"
)

// limits is the type of the configurations. What the loader does not accept by itself, the client
// refuses: the server is told why, and the last good configuration of that name stays.
var limits = resource.Map(
	resource.Proto[*ratelimitv3.RateLimitConfig](resource.Options{NameField: 1, FullState: true}),
	func(c *ratelimitv3.RateLimitConfig) (config.RateLimitConfigToLoad, error) {
		one := config.RateLimitConfigToLoad{Name: c.Name, ConfigYaml: config.ConfigXdsProtoToYaml(c)}
		nowhere := stats.NewStatManager(gostats.NewStore(gostats.NewNullSink(), false), settings.Settings{})
		if _, fault := (event{manager: nowhere, all: []config.RateLimitConfigToLoad{one}}).GetConfig(); fault != nil {
			return one, fmt.Errorf("%v", fault)
		}
		return one, nil
	})

// Provider is a [provider.RateLimitConfigProvider].
type Provider struct {
	events chan provider.ConfigUpdateEvent
	store  *watcher.Store[config.RateLimitConfigToLoad]
}

// New subscribes to all configurations of the client's server. The settings are those of the
// service: with MergeDomainConfigurations two configurations may have one domain.
func New(c *client.Client, manager stats.Manager, s settings.Settings) (*Provider, error) {
	store, err := watcher.NewStore(context.Background(), c, limits, "*")
	if err != nil {
		return nil, err
	}
	p := &Provider{make(chan provider.ConfigUpdateEvent), store}
	go func() {
		for range store.Changes(context.Background()) {
			e := event{manager: manager, merge: s.MergeDomainConfigurations}
			for _, one := range store.All() {
				e.all = append(e.all, one)
			}
			select {
			case p.events <- e:
			case <-store.Done():
			}
		}
	}()
	return p, nil
}

// ConfigUpdateEvent is told of each change, with all that belongs together.
func (p *Provider) ConfigUpdateEvent() <-chan provider.ConfigUpdateEvent { return p.events }

// Stop ends the subscription.
func (p *Provider) Stop() { p.store.Stop() }

type event struct {
	manager stats.Manager
	merge   bool
	all     []config.RateLimitConfigToLoad
}

// GetConfig calls the loader, which panics where a configuration is bad, with the fault that the
// service wants.
func (e event) GetConfig() (_ config.RateLimitConfig, fault any) {
	defer func() { fault = recover() }()
	return config.NewRateLimitConfigLoaderImpl().Load(e.all, e.manager, e.merge), nil
}
