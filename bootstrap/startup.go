package bootstrap

import (
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/xdstp"
)

const typePrefix = "type.googleapis.com/"

// Subscription is a collection to watch from the start.
type Subscription struct {
	TypeURL string
	// Collection is "*", the xdstp URL of a glob or of a list collection, or the URL of a
	// file that holds a list collection, as it was written. Required.
	Collection string
	// Source serves it, if it has one of its own: an API, a file. nil if the source follows from
	// the Config.
	Source *Source
	// InitialFetchTimeout is how long the start of a program waits for the collection
	// (initial_fetch_timeout of lds_config and cds_config, or of the source that answers
	// for the locator in their place), as that of a [Source]. A bootstrap that leaves the field out has 15
	// seconds.
	InitialFetchTimeout time.Duration
}

// standsAlone is whether a Subscription needs no servers of the Config.
func (s Subscription) standsAlone() bool { return s.Source != nil || xdstp.IsFile(s.Collection) }

// startup reads what an Envoy bootstrap asks for of a type: everything that a source has, or
// the collection that a locator names.
func (x field) startup(c *Config, source, locator, typ string) {
	sub := Subscription{TypeURL: typePrefix + typ, Collection: "*"}
	at, l := x.at(source), x.at(locator)
	asked := false
	if at.object() {
		asked, sub.Source, sub.InitialFetchTimeout = at.startupSource()
	}
	own := sub.Source != nil
	// BOOTE-1: a locator names a collection.
	if url := l.str(); url != "" {
		asked, sub.Collection = true, url
		if reason := collectionFault(url, typ); reason != "" {
			l.fault("%s", reason)
		} else if !sub.located(c, at.present()) {
			l.notice("no source answers for its authority: want %s, or a config source that names the authority", source)
		} else if own && sub.Source == nil {
			at.notice("is not used: another config source answers for the locator's authority")
		}
	}
	if asked {
		c.Startup = append(c.Startup, sub)
	}
}

// located completes a Subscription to the collection of a locator that was checked. It says whether a source answers for it.
func (s *Subscription) located(c *Config, configured bool) (answered bool) {
	authority := authorityOf(s.Collection)
	answers := c.sourceOf(authority)
	switch {
	case xdstp.IsFile(s.Collection): // which is a source by itself
		if !configured {
			s.InitialFetchTimeout = DefaultInitialFetchTimeout
		}
	// AUTH-1: a source of its own comes first if it names the authority, and last if it names none.
	case s.Source != nil && slices.Contains(s.Source.Authorities, authority):
	case answers != nil:
		if s.Source != nil || !configured {
			s.Source, s.InitialFetchTimeout = nil, answers.InitialFetchTimeout
		}
	case s.Source != nil && len(s.Source.Authorities) == 0:
		s.Source.Authorities = []string{authority}
	case s.Source != nil, !configured:
		return false
	default: // ads_config
		if c.Authorities == nil {
			c.Authorities = map[string]Authority{}
		}
		c.Authorities[authority] = Authority{}
	}
	return true
}

// startupSource reads lds_config or cds_config: whether it names a source, which is its own or
// else ads_config.
func (x field) startupSource() (asked bool, own *Source, timeout time.Duration) {
	timeout, v2 := x.sourceTerms()
	authorities := x.at("authorities")
	switch name, given := x.ownSpecifier(); name {
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
	return own != nil, own, timeout
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
