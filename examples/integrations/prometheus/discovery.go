// Package prometheus discovers the targets of Prometheus from the endpoints (EDS) of a management
// server.
package prometheus

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/watcher"
)

func init() { discovery.RegisterConfig(&Config{}) }

// Config is an entry of xds_eds_sd_configs.
type Config struct {
	// Bootstrap is the path of a bootstrap file, of gRPC's form or Envoy's.
	Bootstrap string `yaml:"bootstrap"`
	// Clusters are the names of assignments.
	Clusters []string `yaml:"clusters,omitempty"`
	// Collections are "*" and globs of structured names.
	Collections []string `yaml:"collections,omitempty"`
	// Delta asks for the incremental variant.
	Delta bool `yaml:"delta,omitempty"`
}

// UnmarshalYAML checks that there is something to discover.
func (c *Config) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Config
	if err := unmarshal((*plain)(c)); err != nil {
		return err
	}
	if c.Bootstrap == "" {
		return errors.New("xds_eds: no bootstrap is given")
	}
	if len(c.Clusters)+len(c.Collections) == 0 {
		return errors.New(`xds_eds: no clusters or collections are given; collections: ["*"] are all`)
	}
	return nil
}

func (*Config) Name() string { return "xds_eds" }

func (*Config) NewDiscovererMetrics(prometheus.Registerer, discovery.RefreshMetricsInstantiator) discovery.DiscovererMetrics {
	return &discovery.NoopDiscovererMetrics{}
}

func (c *Config) NewDiscoverer(o discovery.DiscovererOptions) (discovery.Discoverer, error) {
	boot, err := bootstrap.Load(c.Bootstrap)
	if err != nil {
		return nil, err
	}
	return &discoverer{config: *c, boot: boot, logger: o.Logger}, nil
}

type discoverer struct {
	config Config
	boot   *bootstrap.Config
	logger *slog.Logger
}

// Run tells of each assignment that changes, a group for each, until the context ends.
func (d *discoverer) Run(ctx context.Context, up chan<- []*targetgroup.Group) {
	config := client.Config{Bootstrap: d.boot, Logger: d.logger}
	if d.config.Delta {
		config.Variant = client.VariantDelta
	}
	c, err := client.New(config)
	if err != nil {
		d.logger.Error("No endpoints are discovered", "err", err)
		return
	}
	defer c.Close()
	tell := func(b watcher.Batch[*endpointv3.ClusterLoadAssignment]) {
		var groups []*targetgroup.Group
		for _, ev := range b.Events {
			switch ev.Kind {
			case client.EventUpdated:
				groups = append(groups, group(ev.Name, ev.Value))
			case client.EventDoesNotExist:
				groups = append(groups, &targetgroup.Group{Source: source(ev.Name)}) // without targets
			}
		}
		if len(groups) > 0 {
			select {
			case up <- groups:
			case <-ctx.Done():
			}
		}
	}
	set, err := watcher.NewSet(ctx, c, eds.Type, tell)
	if err == nil {
		err = set.Add(d.config.Clusters...)
	}
	for _, collection := range d.config.Collections {
		_, failed := watcher.WatchAll(ctx, c, eds.Type, collection, tell)
		err = errors.Join(err, failed)
	}
	if err != nil {
		d.logger.Error("Not all endpoints are discovered", "err", err)
	}
	<-ctx.Done()
}

func source(cluster string) string { return "xds_eds/" + cluster }

// group is the endpoints of an assignment with an address and a port.
func group(cluster string, a *endpointv3.ClusterLoadAssignment) *targetgroup.Group {
	g := &targetgroup.Group{Source: source(cluster), Labels: model.LabelSet{"__meta_xds_cluster": model.LabelValue(cluster)}}
	for _, locality := range a.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress().GetSocketAddress()
			if address == nil {
				continue
			}
			g.Targets = append(g.Targets, model.LabelSet{
				model.AddressLabel:    model.LabelValue(net.JoinHostPort(address.GetAddress(), strconv.Itoa(int(address.GetPortValue())))),
				"__meta_xds_region":   model.LabelValue(locality.GetLocality().GetRegion()),
				"__meta_xds_zone":     model.LabelValue(locality.GetLocality().GetZone()),
				"__meta_xds_sub_zone": model.LabelValue(locality.GetLocality().GetSubZone()),
				"__meta_xds_priority": model.LabelValue(strconv.Itoa(int(locality.GetPriority()))),
				"__meta_xds_health":   model.LabelValue(e.GetHealthStatus().String()),
				"__meta_xds_hostname": model.LabelValue(e.GetEndpoint().GetHostname()),
			})
		}
	}
	return g
}
