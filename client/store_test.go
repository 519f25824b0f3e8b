package client_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/testutil"
)

// run is one run of a program with a store in a directory; it ends with the client.
func run(t *testing.T, srv *testutil.Server, dir string, during func(*rig), change ...func(*client.Config)) {
	t.Helper()
	d := store.Dir(dir, store.Options{})
	r := newRig(t, srv, append([]func(*client.Config){func(c *client.Config) { c.Store = d }}, change...)...)
	during(r)
	r.c.Close()
	<-r.c.Done()
	must(t, d.Close())
	srv.DropConnections()
	synctest.Wait()
}

func stale(evs []client.Event[any]) (ls []string) {
	for i, l := range lines(evs) {
		if evs[i].Stale {
			l += " stale"
		}
		ls = append(ls, l)
	}
	return ls
}

// spec: CACHE-3 LKG-1 LKG-2 LKG-3 LKG-4 LKG-8 LKG-9
func TestStartWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var accepted time.Time
		srv, dir := testutil.NewServer(), filepath.Join(t.TempDir(), "xds")
		run(t, srv, dir, func(r *rig) {
			_, rec := r.watch("a")
			r.watch("b")
			r.clusters(r.accept(), "1", "n1", "a", "b")
			rec.heard(t, "updated a 1")
			accepted = time.Now()
			if _, err := os.Stat(dir); err == nil {
				t.Error("it was kept at once")
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if files, _ := filepath.Glob(dir + "/*.lkg"); len(files) != 1 {
				t.Errorf("after ten seconds the files are %v", files)
			}
		})
		srv.SetRefuse(true)
		run(t, srv, dir, func(r *rig) {
			w, rec := r.watch("a")
			_, lacking := r.watch("c")
			must(t, within(time.Minute, w.Ready))
			synctest.Wait()
			same(t, "heard", stale(rec.all()), []string{"updated a 1 stale", "ambient error a connection stale"})
			lacking.heard(t, "failed c connection")
			value := rec.all()[0].Value.(*clusterv3.Cluster)
			if value.GetAltStatName() != "1" || rec.all()[0].Server == "" {
				t.Errorf("the event is %+v", rec.all()[0])
			}
			for _, s := range r.c.Dump() {
				if want := s.Name == "a"; s.Stale != want || s.Status != "REQUESTED" || (s.Raw != nil) != want {
					t.Errorf("state %+v", s)
				} else if want && !s.Updated.Equal(accepted) {
					t.Errorf("it is of %v, want the time when it was accepted, %v", s.Updated, accepted)
				}
			}
			same(t, "stale", r.c.Gauges().Stale, []client.StaleCount{{Type: cds.Type.TypeURL(), Count: 1}})
			ev, err := r.c.Get(t.Context(), cds.Type, "a")
			if err != nil || !ev.Stale {
				t.Errorf("Get: %+v, %v", ev, err)
			}
			st := r.revive()
			r.request(st, "cds [a c]")
			r.clusters(st, "1", "n1", "a") // c is absent after the timer, or with the full state
			time.Sleep(time.Minute)
			synctest.Wait()
			got := stale(rec.all())
			same(t, "heard last", got[len(got)-1], "updated a 1")
			same(t, "stale", r.c.Gauges().Stale, []client.StaleCount{{Type: cds.Type.TypeURL()}})
		})
	})
}

// spec: LKG-9
func TestStoreOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dir := testutil.NewServer(), t.TempDir()
		run(t, srv, dir, func(r *rig) {
			r.watch("a")
			r.clusters(r.accept(), "1", "n1", "a")
		})
		srv.SetRefuse(true)
		const none, kept = "failed a connection", "updated a 1 stale"
		for what, tt := range map[string]struct {
			change func(*client.Config)
			want   string
		}{
			"another node": {func(c *client.Config) { c.Bootstrap.Node = &corev3.Node{Id: "node-2"} }, none},
			"another node of Config.Node": {func(c *client.Config) {
				c.Node = func(n *corev3.Node) *corev3.Node { n.Id = "node-2"; return n }
			}, none},
			"another server": {func(c *client.Config) { c.Bootstrap.Servers[0].URI = "passthrough:///elsewhere" }, none},
			"the same":       {func(*client.Config) {}, kept},
			"the same node of Config.Node": {func(c *client.Config) {
				id := c.Bootstrap.Node.GetId()
				c.Bootstrap.Node = &corev3.Node{}
				c.Node = func(n *corev3.Node) *corev3.Node { n.Id = id; return n }
			}, kept},
		} {
			run(t, srv, dir, func(r *rig) {
				_, rec := r.watch("a")
				time.Sleep(5 * time.Second)
				synctest.Wait()
				same(t, what, stale(rec.all())[0], tt.want)
			}, tt.change)
		}
	})
}

func anyOf(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	must(t, err)
	return a
}

// spec: LKG-1
func TestSecretsAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dir := testutil.NewServer(), t.TempDir()
		inline := &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: marker}}
		secret := &tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{PrivateKey: inline}}}
		context := &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{{PrivateKey: inline}}}
		with := func(name string, tls proto.Message) *clusterv3.Cluster {
			c := cluster(name, "1")
			c.TransportSocket = &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: anyOf(t, tls)}}
			return c
		}
		byFile := &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{{
			PrivateKey: &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "/key"}},
		}}}
		run(t, srv, dir, func(r *rig) {
			for _, name := range []string{"key", "unknown", "file", "plain"} {
				r.watch(name)
			}
			r.watchType(sds.Type, "s")
			r.watchType(lds.Type, "l")
			st := r.accept()
			unknown := with("unknown", secret)
			unknown.GetTransportSocket().GetTypedConfig().TypeUrl = "type.googleapis.com/of.Nobody"
			r.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", with("key", &tlsv3.UpstreamTlsContext{CommonTlsContext: context}),
				unknown, with("file", &tlsv3.UpstreamTlsContext{CommonTlsContext: byFile}), cluster("plain", "1")))
			r.send(st, testutil.SotW(sds.Type.TypeURL(), "1", "n1", secret))
			inner := &listenerv3.Listener{Name: "l", FilterChains: []*listenerv3.FilterChain{{
				TransportSocket: with("", &tlsv3.DownstreamTlsContext{CommonTlsContext: context}).GetTransportSocket(),
			}}}
			r.send(st, testutil.SotW(lds.Type.TypeURL(), "1", "n1", inner))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			r.log.holds(t, "is not kept")
			if strings.Contains(r.log.text(), marker) {
				t.Error("the marker is in the log")
			}
		}, func(c *client.Config) { c.SkipValidation = true })
		must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if strings.Contains(string(b), marker) {
				t.Errorf("the marker is in %s", path)
			}
			return err
		}))
		srv.SetRefuse(true)
		run(t, srv, dir, func(r *rig) {
			for name, want := range map[string]string{
				"key": "failed key connection", "unknown": "failed unknown connection", "file": "updated file 1 stale", "plain": "updated plain 1 stale",
			} {
				_, rec := r.watch(name)
				time.Sleep(time.Second)
				synctest.Wait()
				same(t, name, stale(rec.all())[0], want)
			}
		})
	})
}

// brittle is a store that does what a script of its own says.
type brittle struct {
	mu    sync.Mutex
	saved []string
	again int // calls that say that all is still good
	fail  func() error
}

func (b *brittle) Load(client.StoreSection, []string, func(client.StoredResource)) error {
	return b.fail()
}
func (b *brittle) Names(client.StoreSection) ([]string, error) { return nil, b.fail() }

func (b *brittle) Save(_ client.StoreSection, changes []client.StoredResource) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.fail(); err != nil {
		return err
	}
	if len(changes) == 0 {
		b.again++
	}
	for _, c := range changes {
		b.saved = append(b.saved, fmt.Sprintf("%s %t", c.Name, c.Resource != nil))
	}
	return nil
}

// A store that fails or panics costs a log line, and what it could not save is saved later.
//
// spec: LKG-3 LKG-7
func TestStoreThatFails(t *testing.T) {
	for what, fail := range map[string]func() error{
		"error": func() error { return fmt.Errorf("%w: full", client.ErrNotSaved) },
		"panic": func() error { panic("at the disk") },
		"exit":  func() error { runtime.Goexit(); return nil },
		"none":  func() error { return (*textless)(nil) },
	} {
		t.Run(what, func(t *testing.T) {
			b := &brittle{fail: fail}
			inBubble(t, func(t *testing.T, r *rig) {
				r.srv.SetRefuse(true)
				_, rec := r.watch("a")
				time.Sleep(time.Second)
				rec.heard(t, "failed a connection")
				st := r.revive()
				r.clusters(st, "1", "n1", "a")
				time.Sleep(4 * time.Second)
				r.clusters(st, "2", "n2", "a")
				rec.heard(t, "failed a connection", "updated a 1", "updated a 2")
				r.log.holds(t, "the store cannot be read in whole")
				time.Sleep(10 * time.Second)
				r.log.holds(t, "the store has a fault while it keeps resources")
				if text := r.log.text(); strings.Contains(text, "#old") || strings.Contains(text, "authority=") {
					t.Errorf("a name without an authority has one in the log:\n%s", text)
				}
				if u := r.c.Gauges().Unsaved; what == "error" && time.Since(u.Since) < 14*time.Second {
					t.Errorf("unsaved since %v ago, want 14 s", time.Since(u.Since))
				}
				b.mu.Lock()
				b.fail = func() error { return nil }
				b.mu.Unlock()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if u := r.c.Gauges().Unsaved; !u.Since.IsZero() {
					t.Errorf("unsaved since %v when all is saved", u.Since)
				}
				if what == "error" {
					b.mu.Lock()
					same(t, "saved", b.saved, []string{"a true"})
					b.mu.Unlock()
				}
			}, func(c *client.Config) { c.Store = b })
		})
	}
}

// What a wildcard does not have any more is forgotten, though it was never loaded.
//
// spec: LKG-5
func TestStoreForgetsMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, dir := testutil.NewServer(), t.TempDir()
		for version, names := range [][]string{{"a", "b"}, {"b", "c"}} {
			run(t, srv, dir, func(r *rig) {
				_, err := r.c.WatchAll(t.Context(), cds.Type, "*", func(client.Batch[any]) {})
				must(t, err)
				r.clusters(r.accept(), fmt.Sprint(version), "n1", names...)
				time.Sleep(20 * time.Second)
			})
		}
		same(t, "heard", staleMembers(t, srv, dir), []string{"ambient error * connection stale", "synced * stale", "updated b 1 stale", "updated c 1 stale"})
	})
}

// staleMembers is what a wildcard is told at a start without a server, sorted.
func staleMembers(t *testing.T, srv *testutil.Server, dir string) (got []string) {
	t.Helper()
	srv.SetRefuse(true)
	run(t, srv, dir, func(r *rig) {
		var mu sync.Mutex
		w, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, stale(b.Events)...)
		})
		must(t, err)
		must(t, within(time.Minute, w.Ready))
		synctest.Wait()
	})
	slices.Sort(got)
	return got
}

// A type that nobody knows to be without secrets is kept only if the program says so. Of what is no linked message
// the program answers for the content, and of other messages for none that is not linked.
//
// spec: LKG-1
func TestStoreOtherTypes(t *testing.T) {
	other := resource.Proto[*corev3.Metadata](resource.Options{})
	unlinked := resource.Custom(resource.TypePrefix+"no.such.Type", resource.Options{}, func(resource.Source, []byte) (int, error) { return 0, nil })
	nobodys := &anypb.Any{TypeUrl: unlinked.TypeURL()}
	for _, tt := range []struct {
		what    string
		kind    resource.AnyType
		value   proto.Message
		allowed bool
		want    string
	}{
		{"not allowed", other, &corev3.Metadata{}, false, ""},
		{"allowed", other, &corev3.Metadata{}, true, "a true"},
		{"of what is not linked", other, &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"f": nobodys}}, true, "a false"},
		{"not linked, not allowed", unlinked, nobodys, false, ""},
		{"not linked", unlinked, nobodys, true, "a true"},
	} {
		b := &brittle{fail: func() error { return nil }}
		inBubble(t, func(t *testing.T, r *rig) {
			r.watchType(tt.kind, "a")
			r.send(r.accept(), testutil.SotW(tt.kind.TypeURL(), "1", "n1", testutil.Wrapped("a", "1", tt.value)))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			same(t, tt.what, strings.Join(b.saved, " "), tt.want)
		}, func(c *client.Config) {
			if c.Store = b; tt.allowed {
				c.StoreTypes = []string{tt.kind.TypeURL()}
			}
		})
	}
}

// asked is a store that notes what it is asked for, and has nothing.
type asked struct {
	brittle
	sections []client.StoreSection
}

func (a *asked) Load(s client.StoreSection, _ []string, _ func(client.StoredResource)) error {
	a.sections = append(a.sections, s)
	return nil
}

// What belongs to different names, scopes, sources or parameters is kept apart.
//
// spec: LKG-2
func TestStoreSections(t *testing.T) {
	kept := &asked{}
	of := func(s client.StoreSection) client.StoreSection {
		s.Type, s.Node = cds.Type.TypeURL(), "node-1"
		return s
	}
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		peer := client.FromSource(bootstrap.Source{Servers: []bootstrap.ManagementServer{{URI: "passthrough:///peer", ChannelCreds: bootstrap.Insecure()}}})
		for name, opts := range map[string][]client.WatchOption{
			"old": nil, "scoped": {client.InScope("s")}, "peer": {peer},
			"xdstp://a/" + clusterName + "/x": nil, "xdstp://b/" + clusterName + "/x": nil,
		} {
			_, err := r.c.Watch(t.Context(), cds.Type, name, func(client.Event[any]) {}, opts...)
			must(t, err)
		}
		time.Sleep(5 * time.Second)
		r.c.Close()
		slices.SortFunc(kept.sections, func(a, b client.StoreSection) int {
			return strings.Compare(a.Authority+a.Scope+a.Source, b.Authority+b.Scope+b.Source)
		})
		for i := range kept.sections {
			if s := &kept.sections[i]; s.Source != "" {
				s.Source = "another"
			}
		}
		same(t, "asked for", kept.sections, []client.StoreSection{
			of(client.StoreSection{Authority: "#default"}),
			of(client.StoreSection{Authority: "#old", Parameters: "env=prod"}),
			of(client.StoreSection{Authority: "#old", Source: "another", Parameters: "env=prod"}),
			of(client.StoreSection{Authority: "#old", Scope: "s", Parameters: "env=prod"}),
			of(client.StoreSection{Authority: "a", Parameters: "env=test"}),
		})
	}, production, func(config *client.Config) {
		config.Store = kept
		config.Bootstrap.DynamicParameters.Authorities = map[string]map[string]string{"a": {"env": "test"}}
		config.Bootstrap.Authorities = map[string]bootstrap.Authority{"a": {}}
		config.Bootstrap.DefaultSource = &bootstrap.Source{Servers: config.Bootstrap.Servers}
	})
}

// mixed is a store that has something of one name under another, and something of another type.
type mixed struct {
	brittle
	server string
	fault  func(*discoveryv3.Resource)
}

func (m *mixed) Load(_ client.StoreSection, _ []string, yield func(client.StoredResource)) error {
	r := testutil.Wrapped("a", "1", cluster("a", "1"))
	m.fault(r)
	b, err := proto.Marshal(r)
	if err != nil {
		return err
	}
	yield(client.StoredResource{Name: "a", Resource: b, Server: m.server, Updated: time.Now()})
	return nil
}

// What a store has that is of another name or type, or does not parse, is passed over.
//
// spec: LKG-3
func TestStoreMixedUp(t *testing.T) {
	for what, fault := range map[string]func(*discoveryv3.Resource){
		"":             func(*discoveryv3.Resource) {},
		"another name": func(r *discoveryv3.Resource) { r.Name = "b" },
		"another type": func(r *discoveryv3.Resource) { r.Resource.TypeUrl = lds.Type.TypeURL() },
		"no message":   func(r *discoveryv3.Resource) { r.Resource.Value = []byte{0xff} },
		"no resource":  func(r *discoveryv3.Resource) { r.ProtoReflect().SetUnknown([]byte{0xff}) },
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.srv.SetRefuse(true)
			_, rec := r.watch("a")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			want := "failed a connection"
			if what == "" {
				want = "updated a 1 stale"
			} else {
				r.log.holds(t, "passed over")
			}
			same(t, what, stale(rec.all())[0], want)
		}, func(c *client.Config) {
			c.Store = &mixed{brittle{fail: func() error { return nil }}, c.Bootstrap.Servers[0].URI, fault}
		})
	}
}

// The store hears each hour that what was saved is still good, lest it grow too old.
//
// spec: LKG-6
func TestStoreHearsThatAllIsGood(t *testing.T) {
	b := &brittle{fail: func() error { return nil }}
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		r.clusters(r.accept(), "1", "n1", "a")
		time.Sleep(3*time.Hour + time.Minute)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.again != 3 {
			t.Errorf("heard %d times in three hours", b.again)
		}
	}, func(c *client.Config) { c.Store = b })
}
