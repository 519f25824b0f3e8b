package main

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/watcher"
)

// all watches what the bootstrap asks for, where it says.
func all[T any](p *program, t *resource.Type[T], s bootstrap.Subscription, text func(T) string) error {
	_, err := watcher.WatchAll(p.ctx, p.client, t, s.Collection, func(b watcher.Batch[T]) {
		for _, ev := range b.Events {
			hear(p, ev, text)
		}
	}, client.AtStartup(s))
	return err
}

// one watches a resource where another says that it is. A program that does this trusts
// its control plane, which then says who is asked.
func one[T any](p *program, t *resource.Type[T], name string, cs *corev3.ConfigSource, text func(T) string) error {
	source, err := p.boot.ConfigSource(cs)
	if err != nil {
		return err
	}
	_, err = watcher.Watch(p.ctx, p.client, t, name, func(ev watcher.Event[T]) {
		hear(p, ev, text)
	}, client.FromSource(source))
	return err
}

// hear passes on what is new, and ends the program if that is nothing good.
func hear[T any](p *program, ev watcher.Event[T], text func(T) string) {
	switch ev.Kind {
	case client.EventUpdated:
		p.news <- fmt.Sprintf("%s %s, from %s", ev.Name, text(ev.Value), ev.Server)
	case client.EventDoesNotExist:
		p.fail(fmt.Errorf("%s does not exist: %v", ev.Name, ev.Reason))
	case client.EventFailed, client.EventAmbientError:
		p.fail(ev.Err)
	case client.EventRecovered, client.EventSynced:
	}
}
