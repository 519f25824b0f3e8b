package view

import (
	"cmp"
	"iter"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/xdswatch/xdswatch/resource/rds"
)

// VIEW-27: shape is a root with its routes, which belong together, and the names of the clusters
// that they lead to.
type shape struct {
	listener *Listener
	routes   []*RouteConfig
	parts    []*resourcePart // of routes; nil for inline ones
	host     *routev3.VirtualHost
	scopes   []*routev3.ScopedRouteConfiguration
	names    names
	clusters []*clusterPart // of names
	needs    []need
	lack     error  // says that some of it is not followed, for want of room or too deep; nil if all is
	open     bool   // something that it is made of has no answer yet
	search   search // for what it waits for
	err      error
}

// build makes the newest shape, and the one in making of it.
func (c *core) build() {
	c.due.stale = false
	s := c.draft()
	c.refresh()
	old := c.next
	c.next = s
	for _, n := range s.needs {
		c.useForShape(n, 1)
	}
	c.enlist(s)
	for v := range s.vhds() {
		c.leadTo(v, 1)
	}
	for i, p := range s.clusters { // VIEW-11
		if r := s.names[i].refs; p.cand != r {
			awaited := p.blocks()
			p.cand = r
			c.enqueue(p)
			c.links.rooted(p)
			c.comesAwaited(p, awaited)
		}
	}
	if old != nil {
		c.retire(old, s)
	}
	c.due.stirred, c.wait.changed = true, true
}

// draft reads the newest resources.
func (c *core) draft() *shape {
	s := &shape{}
	switch c.root.Type {
	case RootListener:
		c.draftListener(s)
	case RootRoutes:
		if c.draftRoot(s, c.rootPart) {
			c.draftRoutes(s, c.rootPart)
			s.err = cmp.Or(s.routes[0].Err, s.err)
		}
	case RootCluster:
		p := c.rootCluster
		if s.names = (names{{p.name, refRoot}}); p.state == stateAbsent || p.state == stateFailed || p.state == stateTrouble && c.hurry() {
			s.err = p.rare().err
		}
	}
	if s.err != nil && c.rootCluster == nil {
		s.names = nil
	}
	if !s.names.sorted() {
		s.names.compact()
	}
	return s
}

// draftRoot says whether the root can be read.
func (c *core) draftRoot(s *shape, p *resourcePart) bool {
	switch {
	case !c.answered(p.state):
		s.open = true
	case p.message == nil: // VIEW-22
		s.err = p.err
	}
	return !s.open && s.err == nil
}

func (c *core) draftListener(s *shape) {
	p := c.rootPart
	if !c.draftRoot(s, p) {
		return
	}
	l := p.message.(*listenerv3.Listener)
	read, ok := p.read.(*listenerRead)
	if !ok {
		read = readListener(l, c.root.Host, c.hooks)
		p.read = read
	}
	if read.err != nil {
		s.err = c.fault(p.feed.kind.TypeURL(), p.name, p.origin, read.err)
		return
	}
	s.listener = &Listener{Origin: p.origin, Name: p.name, Message: l, Note: join(p.ambient, read.note)}
	s.names = slices.Clone(read.names)
	c.draftNeeds(s, read.needs, p.feed)
	for i := range read.routes {
		c.draftRouteRef(s, &read.routes[i])
	}
	for _, ref := range read.scopes {
		c.draftScopes(s, ref)
	}
	c.draftErr(s)
}

// draftScopes adds the route configurations of scopes (SRDS), each once, in the order of the scopes.
func (c *core) draftScopes(s *shape, ref scopesRef) { // VIEW-43
	scopes := ref.inline
	if ref.collection != "" {
		p := c.resource(c.feedOf(srdsKind, ref.source, true, c.rootPart.feed), ref.collection)
		if p == nil {
			s.lack = tooMany(c.config.maxNames)
			return
		}
		s.needs = append(s.needs, need{part: p, Need: Required})
		s.open = s.open || !c.answered(p.state)
		s.listener.Note = join(s.listener.Note, p.err, p.ambient)
		scopes = membersOf[*routev3.ScopedRouteConfiguration](p)
		s.scopes = append(s.scopes, scopes...)
	}
	known := map[string]bool{"": true}
	for _, rc := range s.routes {
		known[rc.Name] = known[rc.Name] || !rc.Inline
	}
	for _, scope := range scopes {
		name := scope.GetRouteConfigurationName()
		switch {
		case scope.GetRouteConfiguration() != nil:
			c.draftRouteRef(s, &routeRef{inline: scope.GetRouteConfiguration(), normal: ref.normal})
		case !known[name]:
			known[name] = true
			c.draftRouteRef(s, &routeRef{name: name, source: ref.routes, normal: ref.normal})
		}
	}
}

// draftErr is the error of the root, if nothing of a listener can be used, and in a client's
// listener that of its routes.
func (c *core) draftErr(s *shape) {
	var errs []error
	for _, rc := range s.routes {
		if rc.Err != nil {
			errs = append(errs, rc.Err)
		}
	}
	if !s.open && s.err == nil && len(errs) > 0 && (c.root.Host != "" || len(errs) == len(s.routes) && len(s.names) == 0) {
		s.err = errs[0]
	}
}

// draftRouteRef adds one route configuration of the listener.
func (c *core) draftRouteRef(s *shape, ref *routeRef) {
	c.draftReferred(s, ref)
	s.routes[len(s.routes)-1].Normalization = ref.normal
}

// draftReferred adds a route configuration by itself.
func (c *core) draftReferred(s *shape, ref *routeRef) {
	if ref.inline == nil { // VIEW-10
		p := c.resource(c.feedOf(rds.Type, ref.source, false, c.rootPart.feed), ref.name)
		if p == nil {
			s.lack = tooMany(c.config.maxNames)
			s.addRoutes(&RouteConfig{Name: ref.name, Err: c.fault(rds.Type.TypeURL(), ref.name, Origin{}, tooMany(c.config.maxNames))}, nil)
			return
		}
		s.needs = append(s.needs, need{part: p, Need: Required})
		c.draftRoutes(s, p)
		return
	}
	if ref.read == nil { // VIEW-2: inline routes are a part too
		ref.read = readRoutes(ref.inline, c.root.Host, c.hooks)
	}
	rc := &RouteConfig{Origin: s.listener.Origin, Name: ref.inline.GetName(), Inline: true, Message: ref.inline}
	c.draftRead(s, rc, nil, ref.read)
}

func (s *shape) addRoutes(rc *RouteConfig, p *resourcePart) {
	s.routes, s.parts = append(s.routes, rc), append(s.parts, p)
}

// draftRoutes adds a route configuration that is a resource.
func (c *core) draftRoutes(s *shape, p *resourcePart) {
	rc := c.routeConfig(p)
	switch {
	case !c.answered(p.state):
		s.open = true
		s.addRoutes(rc, p)
		return
	case p.message == nil:
		s.addRoutes(rc, p)
		return
	}
	read, ok := p.read.(*routesRead)
	if !ok {
		read = readRoutes(rc.Message, c.root.Host, c.hooks)
		p.read = read
	}
	c.draftVHDS(s, rc, p)
	c.draftRead(s, rc, p, read)
}

// routeConfig is a resource as snapshots show it.
func (c *core) routeConfig(p *resourcePart) *RouteConfig {
	rc := &RouteConfig{Origin: p.origin, Name: p.name, Note: p.ambient, Deleted: p.deleted}
	rc.Message, _ = p.message.(*routev3.RouteConfiguration)
	if rc.Message == nil {
		rc.Err = p.err
	}
	return rc
}

func (c *core) draftRead(s *shape, rc *RouteConfig, p *resourcePart, read *routesRead) {
	rc.Note, rc.finder = join(rc.Note, read.note, rc.unserved), &read.finder
	if read.err != nil {
		rc.Err = c.fault(rds.Type.TypeURL(), rc.Name, rc.Origin, read.err)
	} else {
		if len(s.names) == 0 {
			s.names = slices.Clip(read.names) // mostly there is no other
		} else {
			s.names = append(s.names, read.names...)
		}
		s.host = read.host
	}
	by := c.rootPart.feed
	if p != nil {
		by = p.feed
	}
	s.addRoutes(rc, p)
	c.draftNeeds(s, read.needs, by)
}

// draftNeeds adds what hooks found.
func (c *core) draftNeeds(s *shape, all []Dependency, by *feed) {
	if len(all) == 0 {
		return
	}
	needs, clusters, cramped := c.needsOf(all, by, Essential)
	s.needs, s.names = append(s.needs, needs...), append(s.names, clusters...)
	for _, d := range cramped {
		if s.lack = tooMany(c.config.maxNames); d.Need == Essential {
			s.err = cmp.Or(s.err, c.fault(d.Type.TypeURL(), d.Name, Origin{}, s.lack))
		}
	}
	for _, n := range needs {
		if n.Need != Optional && !c.answered(n.part.state) {
			s.open = true
			continue
		}
		s.err, s.lack = cmp.Or(s.err, n.err()), cmp.Or(s.lack, n.deep)
	}
}

func (c *core) useForShape(n need, by int) {
	n.part.users += by
	if n.Need != Optional {
		n.part.blocking += by
	}
	c.enqueue(n.part)
}

// enlist finds the clusters of a shape. Those over the bound are left out, and a note says so.
func (c *core) enlist(s *shape) {
	s.clusters = make([]*clusterPart, 0, len(s.names))
	var kept names // nil if all are
	var known *shape
	if known = c.shown; known == nil {
		known = &shape{}
	}
	j := 0
	for i, n := range s.names {
		for j < len(known.names) && known.names[j].name < n.name {
			j++
		}
		var p *clusterPart
		if j < len(known.names) && known.names[j].name == n.name {
			p = known.clusters[j]
		} else if p = c.cluster(n.name); p == nil {
			if kept == nil {
				kept = slices.Clone(s.names[:i]) // names may be those of a message's read
			}
			s.lack = tooMany(c.config.maxNames)
			continue
		}
		if kept != nil {
			kept = append(kept, n)
		}
		s.clusters = append(s.clusters, p)
	}
	if kept != nil {
		s.names = kept
	}
	if s.lack == nil {
		return
	}
	if _, short := s.lack.(tooMany); short {
		c.starveShape()
	}
	if s.listener != nil {
		s.listener.Note = join(s.listener.Note, s.lack)
		return
	}
	for _, rc := range s.routes {
		rc.Note = join(rc.Note, s.lack)
	}
}

// but are the clusters of a shape that another one does not lead to.
func (s *shape) but(o *shape) iter.Seq[*clusterPart] {
	return func(yield func(*clusterPart) bool) {
		j := 0
		for i, n := range s.names {
			for j < len(o.names) && o.names[j].name < n.name {
				j++
			}
			if (j == len(o.names) || o.names[j].name != n.name) && !yield(s.clusters[i]) {
				return
			}
		}
	}
}

// retire gives back what a shape in making needed, and the one in its place does not.
func (c *core) retire(s, now *shape) {
	c.retireNeeds(s)
	for p := range s.but(now) {
		if p.cand = 0; p.base == 0 {
			c.enqueue(p)
		}
		c.links.rooted(p)
	}
}

// judge publishes the shape in making if it is ready.
//
// MBB-2, WARM-g: that is when each part has an answer; the published one stays until then.
func (c *core) judge() {
	s := c.next
	switch {
	case s == nil:
	case s.err != nil && !s.open:
		c.failRoot(s.err)
	case !s.open && c.clustersReady(s):
		c.accept(s)
	}
}

// clustersReady says whether each cluster that the shape waits for has a value or an error
// (VIEW-20), and each that these lead to.
func (c *core) clustersReady(s *shape) bool {
	return c.search(&s.search, len(s.clusters), func(i int) *clusterPart {
		if s.names[i].refs&static == 0 { // VIEW-21
			return nil
		}
		return s.clusters[i]
	}) == nil
}

// accept makes a shape the published one.
func (c *core) accept(s *shape) {
	old := c.shown
	if old == nil {
		old = &shape{}
	}
	c.next, c.shown, c.rootErr = nil, s, nil
	c.out.news.hosts = true
	if c.out.differs(changeQuiet); c.out.change < changeLoud && !s.same(old) {
		c.out.differs(changeLoud)
	}
	for v := range s.vhds() {
		c.showVHDS(v, 1)
		c.vhds.changed[v] = true
	}
	// Every second one comes first: nodes of the tree are split in the middle, and would stay half empty
	// if all came in order.
	for first := range 2 {
		for i := first; i < len(s.clusters); i += 2 {
			p := s.clusters[i]
			p.cand = 0
			if r := s.names[i].refs; p.base != r {
				p.base = r
				c.place(p)
			}
		}
	}
	for p := range old.but(s) {
		p.base = 0
		c.place(p)
	}
	for _, n := range s.needs {
		n.part.shown++
	}
	c.retireShown(old)
	c.wait.changed = true
}

// retireShown is retireNeeds for a shape that was published.
func (c *core) retireShown(s *shape) {
	for _, n := range s.needs {
		n.part.shown--
	}
	for v := range s.vhds() {
		c.showVHDS(v, -1)
	}
	c.retireNeeds(s)
}

func (c *core) retireNeeds(s *shape) {
	for _, n := range s.needs {
		c.useForShape(n, -1)
	}
	for v := range s.vhds() {
		c.leadTo(v, -1)
	}
}

// failRoot replaces everything by an error of the root (VIEW-22).
func (c *core) failRoot(err error) {
	if c.shown == nil && sameError(c.rootErr, err) {
		return
	}
	old := c.shown
	c.shown, c.rootErr = nil, err
	c.out.differs(changeLoud)
	if old == nil {
		return
	}
	for _, p := range old.clusters {
		p.base = 0
		c.place(p)
	}
	c.retireShown(old)
	for p := range c.wait.open { // trouble counts as an answer again
		p.changed(c)
	}
}
