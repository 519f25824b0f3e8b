package main

import (
	"fmt"
	"iter"
	"slices"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/xdstp"
	"github.com/xdswatch/xdswatch/xdstp/nodeparams"
)

// plan is what a bootstrap says about subscriptions. It is immutable.
type plan struct {
	// startup are those that the bootstrap asks for by itself, in its order.
	startup []subscription.Given
	terms   map[subscription.Subscription]bootstrap.Subscription // of startup
	byType  map[string]bootstrap.Subscription                    // the same, by type URL
	node    []xdstp.Param                                        // that collections of Listeners and Clusters are given
}

func newPlan(boot *bootstrap.Config) (*plan, error) {
	p := &plan{terms: map[subscription.Subscription]bootstrap.Subscription{}, byType: map[string]bootstrap.Subscription{}}
	for _, s := range boot.Startup {
		text := s.Collection
		switch {
		case text == subscription.Wildcard:
			text = subscription.TypeText(s.TypeURL)
		case xdstp.IsFile(text): // which does not tell the type
			text = subscription.TypeText(s.TypeURL) + ":" + text
		}
		sub, err := subscription.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("start-up list: %w", err)
		}
		p.startup, p.terms[sub.Subscription], p.byType[s.TypeURL] = append(p.startup, sub), s, s
	}
	var err error
	p.node, err = nodeparams.Render(boot.Node, boot.NodeContextParams)
	return p, err
}

// every is the collection that has everything of a type: the one that the bootstrap asks for by itself, or
// else the wildcard.
func (p *plan) every(typeURL string) subscription.Subscription {
	for _, own := range p.startup {
		if own.TypeURL == typeURL {
			return own.Subscription
		}
	}
	return subscription.Subscription{TypeURL: typeURL, Name: subscription.Wildcard, Collection: true}
}

// leftOut lists the texts of what the bootstrap asks for by itself and nobody gave.
func (p *plan) leftOut(given []subscription.Given) (texts []string) {
	for _, own := range p.startup {
		if !slices.ContainsFunc(given, func(g subscription.Given) bool { return g.Subscription == own.Subscription }) {
			texts = append(texts, own.Text)
		}
	}
	return texts
}

// options say where a subscription is watched, and how long its start may take: as what the
// bootstrap asks for by itself, or else as lds_config and cds_config say of their types. Those
// that refer to ads_config say nothing of structured names, and their default timeout is left to
// the resource's own. A name may be one that a server sent.
func (p *plan) options(sub subscription.Subscription) []client.WatchOption {
	opts := []client.WatchOption{client.Received()}
	term, its := p.terms[sub]
	of := p.byType[sub.TypeURL]
	switch {
	case its:
		opts = append(opts, client.AtStartup(term))
	case of.Source != nil:
		opts = append(opts, client.FromSource(*of.Source))
	case of.InitialFetchTimeout == bootstrap.DefaultInitialFetchTimeout:
	case of.Collection == subscription.Wildcard && !xdstp.IsXDSTP(sub.Name):
		opts = append(opts, client.InitialFetchTimeout(of.InitialFetchTimeout))
	}
	if sub.Explicit {
		opts = append(opts, client.ExplicitWildcard())
	}
	return opts
}

// nameOf is the name that a subscription as a whole has in events: of a collection with the
// parameters of the node (Envoy's node_context_params).
func (p *plan) nameOf(sub subscription.Subscription) string {
	full := sub.TypeURL == lds.Type.TypeURL() || sub.TypeURL == cds.Type.TypeURL()
	if len(p.node) == 0 || !sub.Collection || !full || !xdstp.IsXDSTP(sub.Name) {
		return sub.Name
	}
	l, err := xdstp.ParseLocator(sub.Name)
	if err != nil {
		return sub.Name // which the client refuses
	}
	l.Name = xdstp.Context{Node: p.node}.Apply(l.Name)
	return l.String()
}

// several says whether a bootstrap knows more than one server.
func several(boot *bootstrap.Config) bool {
	uris := map[string]bool{}
	for s := range servers(boot) {
		uris[s.URI] = true
	}
	return len(uris) > 1
}

// servers are all that a bootstrap knows, some of them more than once.
func servers(boot *bootstrap.Config) iter.Seq[bootstrap.ManagementServer] {
	lists := [][]bootstrap.ManagementServer{boot.Servers}
	for _, a := range boot.Authorities {
		lists = append(lists, a.Servers)
	}
	for _, s := range boot.Sources {
		lists = append(lists, s.Servers)
	}
	if s := boot.DefaultSource; s != nil {
		lists = append(lists, s.Servers)
	}
	for _, s := range boot.Startup {
		if s.Source != nil {
			lists = append(lists, s.Source.Servers)
		}
	}
	return slices.Values(slices.Concat(lists...))
}
