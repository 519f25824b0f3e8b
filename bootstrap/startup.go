package bootstrap

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/xdstp"
)

const typePrefix = "type.googleapis.com/"

// Subscription is a collection that an Envoy bootstrap asks for.
type Subscription struct {
	TypeURL string
	// Collection is "*", the xdstp URL of a glob or of a list collection, or the URL of a
	// file that holds a list collection.
	Collection string
	// Source answers for it; nil where the Config itself says who does.
	Source *Source
	// InitialFetchTimeout is how long the start of a program waits for the collection; 0 or
	// less is no bound.
	InitialFetchTimeout time.Duration
}

// Startup lists what an Envoy bootstrap asks to be watched from the start, Clusters before
// Listeners, as Envoy does it; other formats ask for nothing. The list is the caller's own.
func (c *Config) Startup() []Subscription {
	var out []Subscription
	add := func(typ, locator string, all bool, own *Source, timeout time.Duration) {
		s := Subscription{
			TypeURL: typePrefix + typ, Collection: orDefault(locator, "*"),
			Source: own.copy(), InitialFetchTimeout: timeout,
		}
		if all || locator != "" || own != nil {
			out = append(out, s)
		}
	}
	add(clusterType, c.ClustersLocator, c.WatchClusters, c.ClustersSource, c.ClustersTimeout)
	add(listenerType, c.ListenersLocator, c.WatchListeners, c.ListenersSource, c.ListenersTimeout)
	return out
}

// startup is what an Envoy bootstrap asks for of one type.
type startup struct {
	all     bool // everything, of ads_config
	own     *Source
	url     string
	timeout time.Duration
}

// startup reads what an Envoy bootstrap asks for of a type: everything that a source has, or
// the collection that a locator names.
func (x field) startup(c *Config, source, locator, typ string) startup {
	var s startup
	at, l := x.at(source), x.at(locator)
	if at.object() {
		s.all, s.own, s.timeout = at.startupSource()
	}
	if s.url = l.str(); s.url == "" {
		return s
	}
	s.all = false
	if reason := collectionFault(s.url, typ); reason != "" {
		l.fault("%s", reason)
		return s
	}
	answers := c.sourceOf(authorityOf(s.url))
	switch {
	case xdstp.IsFile(s.url): // which is a source by itself
		if !at.present() {
			s.timeout = DefaultInitialFetchTimeout
		}
	case s.own != nil && len(s.own.Authorities) == 0:
		s.own.Authorities = []string{authorityOf(s.url)}
	case !at.present() && answers != nil:
		s.timeout = answers.InitialFetchTimeout
	}
	return s
}

// startupSource reads lds_config or cds_config: whether it refers to ads_config, or else
// the source that it is.
func (x field) startupSource() (ads bool, own *Source, timeout time.Duration) {
	timeout, v2 := x.sourceTerms()
	authorities := x.at("authorities")
	switch name, given := x.specifier(); name {
	case "ads":
		if authorities.present() {
			authorities.notice("is not used; config_sources may name authorities")
		}
		return given.object(), nil, timeout
	case "self":
		given.fault("means the server that a resource came from, and a bootstrap comes from none; want ads")
	case "":
	default:
		own = &Source{Authorities: authorities.authorityNames(), InitialFetchTimeout: timeout}
		own.Servers = given.ownServers(name, v2)
	}
	return false, own, timeout
}

// sourceOf finds the source of an Envoy bootstrap that answers for an authority.
func (c *Config) sourceOf(authority string) *Source {
	for i := range c.Sources {
		if slices.Contains(c.Sources[i].Authorities, authority) {
			return &c.Sources[i]
		}
	}
	return c.DefaultSource
}

// authorityOf is the authority of a locator that was checked.
func authorityOf(url string) string {
	l, err := xdstp.ParseLocator(url)
	if err != nil {
		return ""
	}
	return l.Name.Authority
}
