package machine

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/testutil/script"
)

// envOf are the parameters of a source's names, in worlds that have any.
func envOf(source int) map[string]string {
	return map[string]string{"env": fmt.Sprint("of source ", source)}
}

// named are the names of a request, each of which has its parameters.
func (w *world) named(names []string, locators []*discoveryv3.ResourceLocator) []string {
	if w.params && len(names) > 0 || !w.params && len(locators) > 0 {
		w.fail("names %q and locators %v; parameters: %v", names, locators, w.params)
	}
	for _, l := range locators {
		if want := envOf(sourceOf(l.Name))["env"]; len(l.DynamicParameters) != 1 || l.DynamicParameters["env"] != want {
			w.fail("%s has the parameters %v, want %q", l.Name, l.DynamicParameters, want)
		}
		names = append(names, l.Name)
	}
	return names
}

// vary is a resource as who has parameters gets it, and before it a variant for others.
func (r *simResponse) vary(res *discoveryv3.Resource) []*discoveryv3.Resource {
	if !r.params || res.Name == "" {
		return []*discoveryv3.Resource{res}
	}
	variant := func(constraints string) *discoveryv3.ResourceName {
		return &discoveryv3.ResourceName{Name: res.Name, DynamicParameterConstraints: script.Constraints(constraints)}
	}
	other := &discoveryv3.Resource{ResourceName: variant("env=other"), Version: "other", Resource: res.Resource, Aliases: res.Aliases}
	res.Name, res.ResourceName = "", variant("env")
	return []*discoveryv3.Resource{other, res}
}

// varyRemoved has variants for others removed of all that the response speaks of, and some
// by name and constraints of what is.
func (r *simResponse) varyRemoved(d *discoveryv3.DeltaDiscoveryResponse) {
	if !r.params {
		return
	}
	mentions := r.mentions()
	remove := func(name, constraints string) {
		d.RemovedResourceNames = append(d.RemovedResourceNames, &discoveryv3.ResourceName{
			Name: name, DynamicParameterConstraints: script.Constraints(constraints),
		})
	}
	d.RemovedResources = nil
	for i, name := range r.removed {
		remove(name, "!env")
		if mentions[name] > 1 || i%2 == 0 || r.aliased {
			d.RemovedResources = append(d.RemovedResources, name)
		} else {
			remove(name, "env")
		}
	}
	for _, en := range r.entries {
		remove(en.name(r.md.typ), "env=other")
	}
}

// describe has the node say something of a type.
func (w *world) describe(url, value string) {
	if w.said == nil {
		w.said = map[string]string{}
	}
	w.said[url] = value
	w.say("describe %s %s", url, value)
	w.push(Described{url, map[string]string{"value": value}})
}

// checkNode: the node goes where it has to, and says what it says now.
func (w *world) checkNode(s *simStream, node *corev3.Node) {
	switch must := !s.began || w.m.config.NodeAlways; {
	case node == nil && must:
		w.fail("a request without the node")
	case node == nil:
		return
	case !must && len(w.said) == 0:
		w.fail("a request with the node")
	}
	s.node = node
	for url, value := range w.said {
		if got := node.DynamicParameters[url].GetParams()["value"]; got != value {
			w.fail("the node says %q of %s, want %q", got, url, value)
		}
	}
}

// checkDescribed: each server was told what the node says of the types that it is asked for.
func (w *world) checkDescribed() {
	for _, s := range w.m.streams {
		sim := w.stream(s.index)
		for _, ts := range s.order {
			url := ts.typ.URL
			if s.state != up || s.watches == 0 || !ts.wanted() {
				continue
			}
			if got := sim.node.GetDynamicParameters()[url].GetParams()["value"]; got != w.said[url] {
				w.fail("stream %d was told %q of %s, want %q", s.index, got, url, w.said[url])
			}
		}
	}
}
