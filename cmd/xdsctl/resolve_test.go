package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/testutil"
)

// resolved is an event of resolve, of any kind.
type resolved struct {
	Time  time.Time
	Event string
	report.ConfigValue
	Error    *report.Error
	For      []waited
	Listener json.RawMessage `json:"listener"`
	Config   *report.ConfigValue
	Waiting  []waited
	Watched  []report.Watched
}

// waited is what is waited for.
type waited struct {
	Type, Name, Reason string
	Since              time.Time
	Blocking           bool
}

// resolved is the next event.
func (p *program) resolved() (ev resolved) {
	p.t.Helper()
	line := p.line()
	if err := json.Unmarshal([]byte(line), &ev); err != nil {
		p.t.Fatalf("%v in %s", err, line)
	}
	return ev
}

// await skips events up to the next of a kind.
func (p *program) await(event string) resolved {
	p.t.Helper()
	for {
		if ev := p.resolved(); ev.Event == event {
			return ev
		}
	}
}

// names are the clusters of a value with their statuses.
func (c resolved) names() string {
	var names []string
	for name, cl := range c.Clusters {
		names = append(names, name+"="+cl.Status)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func aggregate(name string, members ...string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED, ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
		Name: "envoy.clusters.aggregate", TypedConfig: packed(&aggregatev3.ClusterConfig{Clusters: members}),
	}}}
}

// noting is a real server whose unsubscriptions are kept.
type noting struct {
	*testutil.ManagementServer
	gone chan left
}

// left is a name that was unsubscribed.
type left struct {
	typeURL, name string
	at            time.Time
}

func recorded(t *testing.T) *noting {
	r := &noting{gone: make(chan left, 100)}
	r.ManagementServer = testutil.StartManagementServer(t, testutil.ManagementConfig{OnRequest: func(req *testutil.Request) {
		for _, name := range req.Unsubscribed() {
			r.gone <- left{req.TypeURL(), name, req.At}
		}
	}})
	return r
}

// startResolve runs `xdsctl resolve` against a server, with JSON as output.
func startResolve(t *testing.T, addr string, args ...string) *program {
	t.Helper()
	return startCommand(t, strings.NewReplacer(addr, "SERVER"), append([]string{"resolve", "--server", addr, "-o", "json"}, args...)...)
}

var variants = []string{"sotw", "delta"}

// A value has all that the root leads to.
//
// spec: VIEW-2
func TestResolveOnce(t *testing.T) {
	t.Parallel()
	m := managed(t, append(shop(), apiListener("api", "shop"), aggregate("both", "backend", "frontend"))...)
	for _, tt := range []struct {
		args     string
		status   int
		clusters string
		hosts    []string
		listener string
	}{
		{"lds:ingress", 0, "backend=ok frontend=ok", []string{"frontend", "backend"}, `{"name":"ingress","version":"V"}`},
		{"lds:api --host backend.example", 0, "backend=ok", []string{"backend"}, `{"name":"api","version":"V"}`},
		{"rds:shop --host frontend.example", 0, "frontend=ok", []string{"frontend"}, "null"},
		{"cds:both", 0, "backend=ok both=ok frontend=ok", nil, "null"},
		{"cds:backend --hold frontend", 0, "backend=ok frontend=ok", nil, "null"},
		{"rds:legacy --resource-timeout " + silence, 3, "backend=ok gone=error", []string{"backend", "gone"}, "null"},
	} {
		for _, variant := range variants {
			t.Run(tt.args+" "+variant, func(t *testing.T) {
				t.Parallel()
				p := startResolve(t, m.Addr(), append(strings.Fields(tt.args), "--once", "--variant", variant)...)
				ev := p.await("config")
				for !ev.Complete {
					ev = p.await("config")
				}
				p.ends(tt.status)
				var hosts []string
				for _, vh := range ev.VirtualHosts {
					hosts = append(hosts, vh.Name)
				}
				listener := string(ev.Listener)
				if variant == "delta" && listener != "null" {
					listener = listener[:strings.Index(listener, `"version":`)] + `"version":"V"}`
				}
				listener = strings.ReplaceAll(listener, `"version":"1"`, `"version":"V"`)
				if ev.names() != tt.clusters || !slices.Equal(hosts, tt.hosts) || listener != tt.listener {
					t.Errorf("clusters %s, virtual hosts %q, listener %s", ev.names(), hosts, listener)
				}
			})
		}
	}
}

func TestResolveAggregate(t *testing.T) {
	t.Parallel()
	m := managed(t, aggregate("both", "backend", "frontend"), edsCluster("backend"), edsCluster("frontend"), assignment("backend", "10.0.0.1"), assignment("frontend"))
	p := startResolve(t, m.Addr(), "--once", "cds:both")
	ev := p.await("config")
	p.ends(0)
	both, backend := ev.Clusters["both"], ev.Clusters["backend"]
	if both.Kind != "aggregate" || !slices.Equal(both.Leaves, []string{"backend", "frontend"}) || !slices.Equal(both.ReferencedBy, []string{"root"}) {
		t.Errorf("%+v", both)
	}
	if backend.Kind != "eds" || !slices.Equal(backend.ReferencedBy, []string{"aggregate:both"}) || len(backend.Endpoints) != 1 {
		t.Fatalf("%+v", backend)
	}
	if got, want := fmt.Sprintf("%+v", backend.Endpoints[0]), `{Priority:0 Locality:{Region:eu Zone:eu-1 SubZone:} Weight:1 Endpoints:[{Address:10.0.0.1:8080 Weight:1 Health:HEALTHY Hostname:}]}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if note := ev.Clusters["frontend"].Note; note == "" {
		t.Error("nothing says that a cluster has no endpoints")
	}
}

// Errors of a root replace its value.
//
// spec: VIEW-22
func TestResolveErrors(t *testing.T) {
	t.Parallel()
	m := managed(t, &listenerv3.Listener{Name: "tcp", Address: address("0.0.0.0", 80), FilterChains: []*listenerv3.FilterChain{{}}}, apiListener("api", "shop"), routesTo("shop", "a"))
	for _, tt := range []struct{ args, kind, message string }{
		{"lds:missing --resource-timeout 200ms", "data", "does not exist"},
		{"lds:tcp --host x", "data", "api_listener"},
		{"lds:api --host nowhere", "data", "nowhere"},
	} {
		p := startResolve(t, m.Addr(), append(strings.Fields(tt.args), "--once")...)
		ev := p.await("error")
		p.ends(3)
		if ev.Error == nil || ev.Error.Kind != tt.kind || !strings.Contains(ev.Error.Message, tt.message) {
			t.Errorf("%s: %+v", tt.args, ev.Error)
		}
	}
	silent := server(t)
	p := startResolve(t, silent.Target(), "--once", "--resource-timeout", "200ms", "all")
	if ev := p.await("error"); ev.Error == nil || !strings.Contains(ev.Error.Message, "did not answer in time") {
		t.Errorf("of a silent server: %+v", ev.Error)
	}
	p.ends(3)
	addr := m.Addr()
	m.Stop()
	for _, root := range []string{"lds:api", "all"} {
		p := startResolve(t, addr, "--once", root)
		if ev := p.await("error"); ev.Error == nil || ev.Error.Kind != "connection" {
			t.Errorf("%s: %+v", root, ev.Error)
		}
		p.ends(3)
	}
}

// The text says which resource the error is about, which need not be the root.
func TestResolveErrorText(t *testing.T) {
	t.Parallel()
	m := managed(t, apiListener("api", "shop"))
	for root, want := range map[string]string{"lds:missing": `Listener "missing"`, "lds:api": `RouteConfiguration "shop"`} {
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			status, out, errs := runOnce(t, "resolve", "--server", m.Addr(), "--variant", "delta", "--resource-timeout", silence, "--once", root)
			lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			if last := lines[len(lines)-1]; status != 3 || !strings.Contains(last, "  error ") || !strings.Contains(last, want) {
				t.Errorf("status %d, %s\n%s", status, errs, out)
			}
		})
	}
}

// An error of the root is printed once, whatever becomes known beside it, and again after a value.
//
// spec: VIEW-4
func TestResolveErrorOnce(t *testing.T) {
	t.Parallel()
	m := managed(t, edsCluster("a"), assignment("a", "10.0.0.1"))
	p := startResolve(t, m.Addr(), "--variant", "delta", "--stdin", "--resource-timeout", silence, "rds:missing")
	p.await("error")
	p.enter("hold a")
	for held := false; ; {
		ev := p.resolved()
		if ev.Event == "error" {
			t.Fatal("the error is printed twice")
		}
		if ev.Event == "waiting" && held && len(ev.For) == 0 {
			break
		}
		held = held || len(ev.For) > 0
	}
	if err := m.Set("2", routesTo("missing", "a"), edsCluster("a"), assignment("a", "10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	p.await("config")
	if err := m.Set("3", edsCluster("a"), assignment("a", "10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	p.await("error")
	p.enter("quit")
	p.ends(0)
}

// Bad usage is told before anything is dialled.
func TestResolveUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                        "want one ROOT",
		"lds:a lds:b":             "want one ROOT",
		"eds:a":                   `root "eds:a": want lds:NAME`,
		"lds":                     `root "lds": want lds:NAME`,
		"nonsense":                `"nonsense" is neither`,
		"cds:a --host x":          "--host chooses a virtual host",
		"all --host x":            "--host chooses a virtual host",
		"all --hold x":            "--hold keeps a cluster",
		"cds:a -o yaml":           "want text or json",
		"cds:a --bootstrap /none": "--server and --bootstrap are both given",
	} {
		status, out, errs := runOnce(t, append([]string{"resolve", "--server", "127.0.0.1:1"}, strings.Fields(args)...)...)
		if status != 2 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s", args, status, errs)
		}
	}
}

// Listener and routes of a value belong together, and what it does not need any more is
// unsubscribed when it has been printed.
//
// spec: VIEW-15 VIEW-27
func TestResolveReplaces(t *testing.T) {
	t.Parallel()
	m := recorded(t)
	set := func(version string, resources ...proto.Message) {
		t.Helper()
		if err := m.Set(version, resources...); err != nil {
			t.Fatal(err)
		}
	}
	edge := func(routes string, more ...proto.Message) []proto.Message {
		return append(more, apiListener("edge", routes), edsCluster("old"), edsCluster("new"), assignment("old", "10.0.0.1"), assignment("new", "10.0.0.2"))
	}
	set("1", edge("r1", routesTo("r1", "old"))...)
	p := startResolve(t, m.Addr(), "--variant", "delta", "--stdin", "--resource-timeout", never, "lds:edge")
	if ev := p.await("config"); ev.names() != "old=ok" || !ev.Complete || ev.RouteConfigs[0].Name != "r1" {
		t.Fatalf("%+v", ev)
	}
	set("2", edge("r2", routesTo("r1", "old"))...) // r2 does not come yet
	ev := p.await("waiting")
	for len(ev.For) == 0 || ev.For[0].Name != "r2" {
		ev = p.await("waiting")
	}
	if !ev.For[0].Blocking || ev.For[0].Reason == "" || ev.For[0].Since.IsZero() {
		t.Errorf("%+v", ev.For)
	}
	grown := assignment("old", "10.0.0.1", "10.0.0.3")
	moved := edge("r2", routesTo("r1", "old"))
	moved[4] = grown
	set("3", moved...)
	if ev := p.await("config"); ev.RouteConfigs[0].Name != "r1" || len(ev.Clusters["old"].Endpoints[0].Endpoints) != 2 || ev.Complete {
		t.Errorf("%+v", ev)
	}
	if len(m.gone) > 0 {
		t.Errorf("%v was unsubscribed before the new value was there", <-m.gone)
	}
	set("4", append(moved, routesTo("r2", "new"))...)
	ev = p.await("config")
	if ev.RouteConfigs[0].Name != "r2" || ev.names() != "new=ok" || !ev.Complete {
		t.Errorf("%+v", ev)
	}
	want := map[string]bool{rds.Type.TypeURL() + " r1": true, cds.Type.TypeURL() + " old": true, endpoints + " old": true}
	for len(want) > 0 {
		select {
		case g := <-m.gone:
			if id := g.typeURL + " " + g.name; !want[id] || g.at.Before(ev.Time) {
				t.Errorf("%s was unsubscribed at %s, the value is of %s", id, g.at, ev.Time)
			} else {
				delete(want, id)
			}
		case <-time.After(patience):
			t.Fatalf("not unsubscribed: %v", want)
		}
	}
	p.enter("quit")
	p.ends(0)
}

// Equal values are printed once, and a dump has the newest version.
//
// spec: VIEW-4
func TestResolveEqual(t *testing.T) {
	t.Parallel()
	m := managed(t, shop()...)
	p := startResolve(t, m.Addr(), "--stdin", "lds:ingress")
	p.await("config")
	if err := m.Set("2", shop()...); err != nil {
		t.Fatal(err)
	}
	ctx := patient(t)
	for version := ""; version != "2 2 2"; {
		if ctx.Err() != nil {
			t.Fatalf("versions %s", version)
		}
		p.enter("dump")
		ev := p.resolved()
		for ; ev.Event != "dump"; ev = p.resolved() {
			if ev.Event == "config" {
				t.Fatalf("%+v", ev)
			}
		}
		version = ev.Config.Listener.Version + " " + ev.Config.RouteConfigs[0].Version + " " + ev.Config.Clusters["backend"].Version
	}
	p.enter("quit")
	p.ends(0)
}

// A name that is not spelled as the client spells it has the newest version too.
// spec: C-6
func TestResolveSpelled(t *testing.T) {
	t.Parallel()
	srv := server(t)
	root := at("good.example", "host:8080")
	p := startCommand(t, strings.NewReplacer(), "resolve", "--bootstrap", grpcBootstrap(t, srv.Target(), ""), "-o", "json", "--stdin", root)
	st := accept(t, srv)
	send(t, st, testutil.SotW(clusters, "1", "n1", cluster(root)))
	if ev := p.await("config"); ev.Clusters[root].Version != "1" {
		t.Errorf("%+v", ev)
	}
	send(t, st, testutil.SotW(clusters, "2", "n2", cluster(root)))
	for request(t, st).Version() != "2" {
	}
	p.enter("dump")
	if ev := p.await("dump"); ev.Config.Clusters[root].Version != "2" {
		t.Errorf("%+v", ev)
	}
}

// What the server deletes stays while something refers to it, and is marked.
func TestResolveDeleted(t *testing.T) {
	t.Parallel()
	m := managed(t, routesTo("r", "a"), edsCluster("a"), assignment("a", "10.0.0.1"))
	p := startResolve(t, m.Addr(), "rds:r")
	p.await("config")
	if err := m.Set("2", routesTo("r", "a"), assignment("a", "10.0.0.1")); err != nil {
		t.Fatal(err)
	}
	for {
		ev := p.await("config")
		if a := ev.Clusters["a"]; a.Deleted {
			if a.Status != "ok" || len(a.Endpoints) != 1 {
				t.Errorf("%+v", a)
			}
			return
		}
	}
}
