package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/xdstp"
)

// keeper is a management server that holds resources by structured names, and tells at
// once of each that is asked for what it has or that it has none. It speaks delta.
type keeper struct {
	t   *testing.T
	srv *testutil.Server

	mu      sync.Mutex
	version int
	held    map[string]*discoveryv3.Resource
	spelled map[string]string // how the server spells a name
	silent  map[string]bool   // names that it says nothing of
	wanted  map[*testutil.Stream]map[string]bool
	asked   []string // names as they were first asked for
	nacks   []string
}

func newKeeper(t *testing.T, name string) *keeper {
	k := &keeper{
		t: t, held: map[string]*discoveryv3.Resource{}, spelled: map[string]string{}, silent: map[string]bool{},
		wanted: map[*testutil.Stream]map[string]bool{},
	}
	k.srv = testutil.NewServer(testutil.Named(name), testutil.OnRequest(k.request))
	t.Cleanup(k.srv.Close)
	return k
}

func (k *keeper) request(st *testutil.Stream, r *testutil.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d := r.ErrorDetail(); d != nil {
		k.nacks = append(k.nacks, d.GetMessage())
	}
	wanted := k.wanted[st]
	if wanted == nil {
		wanted = map[string]bool{}
		k.wanted[st] = wanted
	}
	for _, name := range k.canonical(r.Unsubscribed()) {
		delete(wanted, name)
	}
	k.asked = append(k.asked, r.Names()...)
	names := k.canonical(r.Names())
	for _, name := range names {
		wanted[name] = true
	}
	if len(names) > 0 {
		k.tell(st, r.TypeURL(), names...)
	}
}

// canonical are names by which the server finds what it holds.
func (k *keeper) canonical(names []string) (out []string) {
	for _, name := range names {
		text, err := xdstp.Canonical(name)
		if err != nil {
			k.t.Error(err)
		}
		out = append(out, text)
	}
	return out
}

// tell sends what is so of names. The stream may be over.
func (k *keeper) tell(st *testutil.Stream, typeURL string, names ...string) {
	k.version++
	resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: typeURL, Nonce: fmt.Sprint("n", k.version)}
	for _, name := range names {
		switch r := k.held[name]; {
		case k.silent[name]:
		case r != nil:
			resp.Resources = append(resp.Resources, r)
		default:
			resp.RemovedResources = append(resp.RemovedResources, name)
		}
	}
	_ = st.Send(resp)
}

// put holds a resource under a name. Its version is a text, or else counts.
func (k *keeper) put(name string, m proto.Message, version string) {
	k.mu.Lock()
	r := testutil.Wrapped(name, version, m)
	if s := k.spelled[name]; s != "" {
		r.Name = s
	}
	k.held[name] = r
	delete(k.silent, name)
	k.push(name)
	k.mu.Unlock()
	synctest.Wait()
}

func (k *keeper) remove(name string) {
	k.mu.Lock()
	delete(k.held, name)
	k.push(name)
	k.mu.Unlock()
	synctest.Wait()
}

// push tells those who want a name.
func (k *keeper) push(name string) {
	n, err := xdstp.Parse(name)
	if err != nil {
		k.t.Error(err)
		return
	}
	for st, wanted := range k.wanted {
		if wanted[name] {
			k.tell(st, resource.TypePrefix+n.Type, name)
		}
	}
}

// mute has the server say nothing of names.
func (k *keeper) mute(names ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		k.silent[name] = true
	}
}

// subscribed are the names that are wanted on streams that stand, once those that linger
// are over.
func (k *keeper) subscribed() []string {
	time.Sleep(time.Second)
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for st, wanted := range k.wanted {
		select {
		case <-st.Done():
			continue
		default:
		}
		for name := range wanted {
			names = append(names, shortNames.Replace(name))
		}
	}
	slices.Sort(names)
	return names
}

func (k *keeper) refusals() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, n := range k.nacks {
		out = append(out, shortNames.Replace(n))
	}
	return out
}

// down makes the server unreachable.
func (k *keeper) down() {
	k.srv.SetRefuse(true)
	k.srv.DropConnections()
	synctest.Wait()
}

// world is a client and the servers of three authorities, a, b and c.
type world struct {
	*rig
	a, b, c2 *keeper
	begin    func() // makes the client, anew once the last is closed
}

func inWorld(t *testing.T, test func(*testing.T, *world), change ...func(*client.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{a: newKeeper(t, "a"), b: newKeeper(t, "b"), c2: newKeeper(t, "c")}
		authorities := map[string]bootstrap.Authority{}
		for name, k := range map[string]*keeper{"a": w.a, "b": w.b, "c": w.c2} {
			authorities[name] = bootstrap.Authority{Servers: []bootstrap.ManagementServer{
				{URI: k.srv.Target(), ChannelCreds: bootstrap.Insecure()},
			}}
		}
		config := func(c *client.Config) {
			c.Bootstrap.Authorities, c.Variant = authorities, client.VariantDelta
			c.GRPC = transport.GRPCConfig{DialOptions: append(c.GRPC.DialOptions, testutil.InMemory(w.a.srv, w.b.srv, w.c2.srv))}
		}
		w.begin = func() { w.rig = newRig(t, w.a.srv, append([]func(*client.Config){config}, change...)...) }
		w.begin()
		test(t, w)
	})
}

// failOnDataErrors has all servers of a world speak of errors that take a value away.
func failOnDataErrors(c *client.Config) {
	for _, a := range c.Bootstrap.Authorities {
		a.Servers[0].Features.FailOnDataErrors = true
	}
}

// at is the name of a cluster, dir that of a list of clusters.
func at(authority, id string) string { return "xdstp://" + authority + "/" + clusterName + "/" + id }
func dir(authority, id string) string {
	return "xdstp://" + authority + "/" + clusterName + "Collection/" + id
}

// shortNames makes what is compared readable: "a/x" for a cluster, "a//x" for a list.
var shortNames = strings.NewReplacer(
	"xdstp://a/"+clusterName+"/", "a/", "xdstp://b/"+clusterName+"/", "b/", "xdstp://c/"+clusterName+"/", "c/",
	"xdstp://a/"+clusterName+"Collection/", "a//", "xdstp://b/"+clusterName+"Collection/", "b//",
	"xdstp://c/"+clusterName+"Collection/", "c//",
)

// redirect is the locator of a URL as a message.
func redirect(url string) *xdscorev3.ResourceLocator {
	l, err := xdstp.ParseLocator(url)
	if err != nil {
		panic(err)
	}
	return locatorMessage(l)
}

func locatorMessage(l xdstp.Locator) *xdscorev3.ResourceLocator {
	m := &xdscorev3.ResourceLocator{Id: l.Name.ID, Authority: l.Name.Authority, ResourceType: l.Name.Type}
	if l.Scheme == xdstp.SchemeHTTP {
		m.Scheme = xdscorev3.ResourceLocator_HTTP
	}
	if len(l.Name.Params) > 0 {
		params := map[string]string{}
		for _, p := range l.Name.Params {
			params[p.Key] = p.Value
		}
		m.ContextParamSpecifier = &xdscorev3.ResourceLocator_ExactContext{ExactContext: &xdscorev3.ContextParams{Params: params}}
	}
	for _, d := range l.Directives {
		md := &xdscorev3.ResourceLocator_Directive{Directive: &xdscorev3.ResourceLocator_Directive_Entry{Entry: d.Entry}}
		if d.Alt != nil {
			md.Directive = &xdscorev3.ResourceLocator_Directive_Alt{Alt: locatorMessage(*d.Alt)}
		}
		m.Directives = append(m.Directives, md)
	}
	return m
}

// listing is a ClusterCollection as it is on the wire, of locators and inline entries.
func listing(entries ...*xdscorev3.CollectionEntry) *anypb.Any {
	var b []byte
	for _, e := range entries {
		b = appendEntry(b, e)
	}
	return &anypb.Any{TypeUrl: resource.TypePrefix + clusterName + "Collection", Value: b}
}

func member(url string) *xdscorev3.CollectionEntry {
	return &xdscorev3.CollectionEntry{ResourceSpecifier: &xdscorev3.CollectionEntry_Locator{Locator: redirect(url)}}
}

func inline(name, version string, m proto.Message) *xdscorev3.CollectionEntry {
	body, ok := m.(*anypb.Any)
	if !ok {
		body, _ = anypb.New(m)
	}
	return &xdscorev3.CollectionEntry{ResourceSpecifier: &xdscorev3.CollectionEntry_InlineEntry_{
		InlineEntry: &xdscorev3.CollectionEntry_InlineEntry{Name: name, Version: version, Resource: body},
	}}
}

// heard compares what a watch of a name heard, with short names.
func (w *world) heard(rec *record, want ...string) {
	w.t.Helper()
	synctest.Wait()
	var got []string
	for _, line := range lines(rec.all()) {
		got = append(got, shortNames.Replace(line))
	}
	same(w.t, "heard", got, want)
}

// since compares what a watch heard since the last call.
func (w *world) since(rec *record, want ...string) {
	w.t.Helper()
	w.heard(rec, want...)
	rec.mu.Lock()
	rec.events = nil
	rec.mu.Unlock()
}

// all watches a collection and records its events one by one.
func (w *world) all(collection string) (*client.Watch, *record) {
	w.t.Helper()
	rec := &record{}
	watch, err := w.c.WatchAll(context.Background(), cds.Type, collection, func(b client.Batch[any]) {
		for _, ev := range b.Events {
			rec.hear(ev)
		}
	})
	must(w.t, err)
	return watch, rec
}

// unwanted checks that nothing is subscribed to any more.
func (w *world) unwanted() {
	w.t.Helper()
	synctest.Wait()
	for _, s := range w.c.Dump() {
		if s.Watched {
			w.t.Errorf("%s is still watched", shortNames.Replace(s.Name))
		}
	}
}

func appendEntry(b []byte, e *xdscorev3.CollectionEntry) []byte {
	raw, err := proto.Marshal(e)
	if err != nil {
		panic(err)
	}
	return protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), raw)
}

func wrapped(name string) *discoveryv3.Resource {
	return testutil.Wrapped(name, "1", cluster("c", ""))
}
