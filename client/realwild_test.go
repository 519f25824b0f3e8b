package client_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A handler that asks go-control-plane's server for everything, when it has sent all that there is
// by name, hears what is held, and that it is all.
// spec: WILD-3 P-2
func TestRealServerWildcardOverNames(t *testing.T) {
	for variant, name := range map[client.Variant]string{client.VariantSotW: "sotw", client.VariantDelta: "delta"} {
		t.Run(name, func(t *testing.T) {
			srv := testutil.StartManagementServer(t, testutil.ManagementConfig{})
			must(t, srv.Set("1", cluster("a", "one")))
			boot, err := bootstrap.Server(srv.Addr())
			must(t, err)
			c, err := client.New(client.Config{Bootstrap: boot, Variant: variant, ResourceTimeout: 3 * time.Second})
			must(t, err)
			defer func() {
				c.Close()
				<-c.Done()
			}()
			var heard []string
			synced := make(chan struct{})
			_, err = c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) {
				_, err := c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
					for _, ev := range b.Events {
						if heard = append(heard, ev.Kind.String()+" "+ev.Name); ev.Name == "*" {
							close(synced)
						}
					}
				})
				if err != nil {
					t.Error(err)
				}
			})
			must(t, err)
			select {
			case <-synced:
			case <-time.After(time.Minute):
				t.Fatal("nothing is heard of the wildcard")
			}
			same(t, "heard", heard, []string{"updated a", "synced *"})
		})
	}
	noLeak(t)
}

// In delta it remembers for the life of a stream what it sent for a wildcard, and says nothing of it to who
// asks by name: that is done on a new stream, however short the resource timer is.
// spec: WILD-3 DNE-1 P-5
func TestRealServerNameAfterWildcard(t *testing.T) {
	for _, timeout := range []time.Duration{0, 3 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) { nameAfterWildcard(t, timeout) })
	}
}

func nameAfterWildcard(t *testing.T, timeout time.Duration) {
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, srv.Set("1", cluster("a", "one"), cluster("b", "one")))
	c := realClient(t, srv, client.Config{Variant: client.VariantDelta, ResourceTimeout: timeout})
	_, err := c.Watch(context.Background(), cds.Type, "b", func(client.Event[any]) {}) // the stream stays
	must(t, err)
	synced := make(chan struct{})
	all, err := c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
		if b.Synced() {
			close(synced)
		}
	})
	must(t, err)
	<-synced
	all.Stop()
	for deadline := time.Now().Add(time.Minute); len(c.Dump()) > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the wildcard is not left")
		}
	}
	events := make(chan client.Event[any], 10)
	_, err = c.Watch(context.Background(), cds.Type, "a", func(ev client.Event[any]) { events <- ev })
	must(t, err)
	await(t, events, "updated a one")
	same(t, "events besides", len(events), 0)
}

// A wildcard that is left and begins again, beside another type, loses nothing.
// spec: WILD-4 S-21
func TestRealServerWildcardAgain(t *testing.T) {
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, srv.Set("1", cluster("a", "one"), cluster("b", "one"), assignment("e")))
	c := realClient(t, srv, client.Config{Variant: client.VariantSotW})
	_, err := c.Watch(context.Background(), eds.Type, "e", func(client.Event[any]) {}) // the stream stays
	must(t, err)
	events := make(chan client.Event[any], 100)
	everything := func() *client.Watch {
		all, err := c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
			for _, ev := range b.Events {
				events <- ev
			}
		})
		must(t, err)
		return all
	}
	all := everything()
	await(t, events, "synced *")
	all.Stop()
	for deadline := time.Now().Add(time.Minute); len(c.Dump()) > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the wildcard is not left")
		}
	}
	everything()
	heard := []string{(<-events).Name, (<-events).Name, (<-events).Name}
	slices.Sort(heard[:2])
	same(t, "heard of", heard, []string{"a", "b", "*"})
	must(t, srv.Set("2", cluster("a", "two"), cluster("b", "one"), assignment("e")))
	await(t, events, "updated a two")
	same(t, "events besides", len(events), 0)
}

// In its ADS mode it answers a wildcard that begins after a name, and sends both their updates.
// spec: WILD-3 P-1
func TestRealServerSilentWildcard(t *testing.T) {
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{ADS: true})
	must(t, srv.Set("1", cluster("a", "one")))
	c := realClient(t, srv, client.Config{Variant: client.VariantSotW, ResourceTimeout: 3 * time.Second})
	one := make(chan client.Event[any], 10)
	_, err := c.Watch(context.Background(), cds.Type, "a", func(ev client.Event[any]) { one <- ev })
	must(t, err)
	await(t, one, "updated a one")
	must(t, srv.Set("2", cluster("a", "two"), cluster("b", "two")))
	var heard []string
	synced := make(chan struct{})
	_, err = c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
		for _, ev := range b.Events {
			if heard = append(heard, ev.Kind.String()+" "+ev.Name); ev.Kind == client.EventSynced {
				close(synced)
			}
		}
	})
	must(t, err)
	select {
	case <-synced:
	case <-time.After(time.Minute):
		t.Fatal("nothing is heard of the wildcard")
	}
	slices.Sort(heard)
	same(t, "heard", heard, []string{"synced *", "updated a", "updated a", "updated b"})
	await(t, one, "updated a two")
	must(t, srv.Set("3", cluster("a", "three"), cluster("b", "two")))
	await(t, one, "updated a three")
	same(t, "events besides", len(one), 0)
}

// realClient begins a client of a server. At the end of the test nothing is left of it.
func realClient(t *testing.T, srv *testutil.ManagementServer, config client.Config) *client.Client {
	t.Helper()
	var err error
	config.Bootstrap, err = bootstrap.Server(srv.Addr())
	must(t, err)
	c, err := client.New(config)
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		noLeak(t)
	})
	return c
}
