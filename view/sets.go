package view

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/xdstp"
)

// sets are the subscriptions of a view: a set for each feed, a watch for each collection.
type sets struct {
	view        *View
	sets        map[string]*client.Set   // by feed key
	collections map[string]*client.Watch // by feed key and name
}

// delivery is an event, and what it is about.
type delivery struct {
	watch watch
	event *client.Event[any]
}

// refusal is a name that cannot be watched.
type refusal struct {
	watch watch
	event client.Event[any]
}

func newSets(v *View) *sets {
	return &sets{view: v, sets: map[string]*client.Set{}, collections: map[string]*client.Watch{}}
}

// watch subscribes to what is sorted by feed.
func (s *sets) watch(all []watch) (refused []refusal) {
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(w watch) bool { return w.feed != all[0].feed })
		if n < 0 {
			n = len(all)
		}
		refused = append(refused, s.watchOne(all[:n])...)
		all = all[n:]
	}
	return refused
}

// watchOne subscribes to names of one feed.
func (s *sets) watchOne(all []watch) (refused []refusal) {
	feed := all[0].feed
	if feed != nil && feed.collection {
		for _, w := range all {
			if err := s.watchCollection(w); err != nil {
				refused = append(refused, s.refuse(w, err))
			}
		}
		return refused
	}
	set, err := s.set(all[0])
	if err != nil {
		for _, w := range all {
			refused = append(refused, s.refuse(w, err))
		}
		return refused
	}
	names := make([]string, 0, len(all))
	for _, w := range all {
		if !s.view.fed || !s.view.isRoot(w) {
			names = append(names, w.name)
		}
	}
	if set.Add(names...) == nil {
		return nil
	}
	for _, w := range all { // whose error it was; the others are in the set
		if err := set.Add(w.name); err != nil {
			refused = append(refused, s.refuse(w, err))
		}
	}
	return refused
}

func (v *View) isRoot(w watch) bool {
	return w.feed != nil && v.core.rootPart.feed == w.feed && w.name == v.root.Name
}

// rootWatch is the watch of the view's root.
func (v *View) rootWatch() watch {
	if v.core.rootPart == nil {
		return watch{nil, v.root.Name} // a cluster
	}
	return watch{v.core.rootPart.feed, v.root.Name}
}

// checkOwn says what is wrong with the context parameters of a name that the program gave, and no server.
func (v *View) checkOwn(w watch) error {
	n, err := xdstp.Parse(w.name)
	if err != nil {
		return nil // an old-style name, or a fault that the client tells of
	}
	// CTX-1: xds.* is the client's, as in a watch.
	if err := n.CheckReserved(); err != nil {
		return v.core.configError(w, err)
	}
	return nil
}

func (c *core) configError(w watch, err error) error {
	return bare(&client.ResourceError{Kind: client.ErrorConfig, Type: w.typeURL(), Name: w.name, NodeID: c.config.node(), Err: err})
}

func (s *sets) refuse(w watch, err error) refusal {
	if _, ok := errors.AsType[*client.ResourceError](err); !ok {
		err = s.view.core.configError(w, err) // ERR-11
	}
	return refusal{w, client.Event[any]{Kind: client.EventFailed, Type: w.typeURL(), Name: w.name, Asked: w.name, Err: err}}
}

// OD-c, OD-d: names are watched by name, whoever else watches all, and on the stream that is there.
func (s *sets) set(w watch) (*client.Set, error) {
	key := w.key()
	if set := s.sets[key]; set != nil {
		return set, nil
	}
	kind, opts, err := s.options(w)
	if err != nil {
		return nil, err
	}
	feed := w.feed
	set, err := s.view.client.NewSet(s.view.ctx, kind, func(b client.Batch[any]) {
		events := make([]delivery, len(b.Events))
		for i := range b.Events {
			events[i] = delivery{watch{feed, b.Events[i].Asked}, &b.Events[i]}
		}
		s.view.take(events, b.Last)
	}, opts...)
	if err == nil {
		s.sets[key] = set
	}
	return set, err
}

func (s *sets) options(w watch) (kind resource.AnyType, opts []client.WatchOption, err error) {
	feed := w.feed
	if feed == nil {
		feed = s.view.core.cds
	}
	opts = append(slices.Clip(s.view.config.Options), client.Received())
	if feed.kind == vhdsKind { // VHDS-1
		opts = append(opts, client.DeltaOnly())
	}
	if feed.kind == leds.Type { // LEDS-1
		opts = append(opts, client.ListByName())
	}
	if feed.fetch > 0 { // the program's own options come after it
		opts = slices.Insert(opts, 0, client.InitialFetchTimeout(feed.fetch))
	}
	if feed.source == nil {
		return feed.kind, fromStartup(s.view.startup, feed.startup, opts), nil
	}
	if s.view.config.Source == nil {
		return nil, nil, fmt.Errorf("its config source is neither ads nor self (%T), and the view has no Config.Source for it", feed.source.GetConfigSourceSpecifier())
	}
	source, err := s.view.config.Source(feed.source)
	if err != nil {
		return nil, nil, err
	}
	return feed.kind, append(opts, client.FromSource(source)), nil
}

// fromStartup adds the source that a bootstrap has for a type, unless the program's options have one.
func fromStartup(sources map[string]bootstrap.Source, typeURL string, opts []client.WatchOption) []client.WatchOption {
	own, ok := sources[typeURL]
	if !ok {
		return opts
	}
	return append([]client.WatchOption{client.FromSource(own)}, opts...)
}

func (s *sets) watchCollection(w watch) error {
	kind, opts, err := s.options(w)
	if err != nil {
		return err
	}
	cw, err := s.view.client.WatchAll(s.view.ctx, kind, w.name, func(b client.Batch[any]) {
		events := make([]delivery, len(b.Events))
		for i := range b.Events {
			events[i] = delivery{w, &b.Events[i]}
		}
		s.view.take(events, b.Last)
	}, opts...)
	if err == nil {
		s.collections[w.key()+" "+w.name] = cw
	}
	return err
}

// unwatch ends subscriptions.
func (s *sets) unwatch(all []watch) {
	names := map[*client.Set][]string{}
	for _, w := range all {
		if w.feed != nil && w.feed.collection {
			key := w.key() + " " + w.name
			if cw := s.collections[key]; cw != nil {
				cw.Stop()
				delete(s.collections, key)
			}
			continue
		}
		if set := s.sets[w.key()]; set != nil {
			names[set] = append(names[set], w.name)
		}
	}
	for set, of := range names {
		set.Remove(of...)
	}
}

// end ends the sets of sources that nothing is watched of.
func (s *sets) end(all []*feed) {
	for _, f := range all {
		if set := s.sets[f.key]; set != nil {
			set.Stop()
			delete(s.sets, f.key)
		}
	}
}

func (s *sets) stop() {
	for _, set := range s.sets {
		set.Stop()
	}
	for _, cw := range s.collections {
		cw.Stop()
	}
}
