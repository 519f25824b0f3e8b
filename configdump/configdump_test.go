package configdump_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/configdump"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const marker = "MARK3R"

func secret() *tlsv3.Secret {
	return &tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		PrivateKey: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: marker}},
	}}}
}

// serving calls test with a client that holds some resources and was refused others.
func serving(t *testing.T, test func(t *testing.T, c *client.Client)) {
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		boot.Node = &corev3.Node{Id: "edge-1"}
		c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
		must(t, err)
		defer func() {
			c.Close()
			<-c.Done()
			srv.Close()
		}()
		for _, w := range []struct {
			kind  resource.AnyType
			names []string
		}{
			{cds.Type, []string{"a", "b", "bad", "waited"}}, {eds.Type, []string{"a"}}, {lds.Type, []string{"in", "bad", "gone"}},
			{rds.Type, []string{"r"}}, {sds.Type, []string{"s"}},
		} {
			for _, name := range w.names {
				_, err := c.Watch(context.Background(), w.kind, name, func(client.Event[any]) {})
				must(t, err)
			}
		}
		st, err := srv.Accept(t.Context())
		must(t, err)
		synctest.Wait()
		unknown := &clusterv3.Cluster{Name: "b", TransportSocket: &corev3.TransportSocket{Name: "x", ConfigType: &corev3.TransportSocket_TypedConfig{
			TypedConfig: &anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte(marker)},
		}}}
		badCluster := &clusterv3.Cluster{Name: "bad", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: -1}}
		badListener := &listenerv3.Listener{Name: "bad", ConnectionBalanceConfig: &listenerv3.Listener_ConnectionBalanceConfig{}}
		for _, m := range []proto.Message{
			testutil.SotW(cds.Type.TypeURL(), "c1", "c1", &clusterv3.Cluster{Name: "a"}, unknown, badCluster),
			testutil.SotW(eds.Type.TypeURL(), "e1", "e1", &endpointv3.ClusterLoadAssignment{ClusterName: "a"}),
			testutil.SotW(lds.Type.TypeURL(), "l1", "l1", &listenerv3.Listener{Name: "in"}, badListener),
			testutil.SotW(rds.Type.TypeURL(), "r1", "r1", &routev3.RouteConfiguration{Name: "r"}),
			testutil.SotW(sds.Type.TypeURL(), "s1", "s1", secret()),
		} {
			must(t, st.Send(m))
			synctest.Wait()
		}
		test(t, c)
	})
}

// A name whose resource is elsewhere is not listed; the resource is. A refused redirect has its own type.
func TestRedirect(t *testing.T) {
	const from, to = "xdstp://same/envoy.config.cluster.v3.Cluster/from", "xdstp://same/envoy.config.cluster.v3.Cluster/to"
	synctest.Test(t, func(t *testing.T) {
		srv := testutil.NewServer()
		boot, err := bootstrap.Server(srv.Target())
		must(t, err)
		boot.Authorities = map[string]bootstrap.Authority{"same": {}}
		c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
		must(t, err)
		defer func() {
			c.Close()
			<-c.Done()
			srv.Close()
		}()
		_, err = c.Watch(t.Context(), cds.Type, from, func(client.Event[any]) {})
		must(t, err)
		st, err := srv.Accept(t.Context())
		must(t, err)
		redirect := func(to string) proto.Message {
			locator := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), to)
			return testutil.Wrapped(from, "1", &anypb.Any{TypeUrl: resource.TypePrefix + "xds.core.v3.ResourceLocator", Value: locator})
		}
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", redirect(to))))
		synctest.Wait()
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "2", "n2", redirect(to), &clusterv3.Cluster{Name: to})))
		synctest.Wait()
		_, body := get(t, c, "resource=dynamic_active_clusters")
		if strings.Count(body, "version_info")+strings.Count(body, "versionInfo") != 1 || !strings.Contains(body, to) {
			t.Errorf("the dump is %s", body)
		}
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "3", "n3", &clusterv3.Cluster{Name: from})))
		synctest.Wait()
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "4", "n4", redirect("http://elsewhere/cluster"))))
		synctest.Wait()
		_, body = get(t, c, "resource=dynamic_active_clusters&mask=error_state.failed_configuration")
		if strings.Count(body, "failed_configuration") != 1 || !strings.Contains(body, "ResourceLocator") {
			t.Errorf("with a refused redirect the dump is %s", body)
		}
	})
}

func get(t *testing.T, c *client.Client, query string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	configdump.Handler(c).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/config_dump?"+query, nil))
	if w.Code == http.StatusOK && w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("the type is %q", w.Header().Get("Content-Type"))
	}
	return w.Code, w.Body.String()
}

// known has readers skip messages that are not linked in, as istioctl does.
var known = protojson.UnmarshalOptions{DiscardUnknown: true}

// dumped reads a dump as istioctl does: by the types of its sections.
func dumped(t *testing.T, text string) (sections []string, at map[string]*anypb.Any) {
	t.Helper()
	d := &adminv3.ConfigDump{}
	must(t, known.Unmarshal([]byte(strings.ReplaceAll(text, "no.such.Type", "google.protobuf.Empty")), d))
	at = map[string]*anypb.Any{}
	for _, a := range d.GetConfigs() {
		name := string(a.MessageName().Name())
		sections = append(sections, name)
		at[name] = a
	}
	return sections, at
}

var without = []string{
	"BootstrapConfigDump", "ClustersConfigDump", "EcdsConfigDump", "ListenersConfigDump", "ScopedRoutesConfigDump", "RoutesConfigDump", "SecretsConfigDump",
}

// All sections are there in Envoy's order, those of endpoints on request, with what is in use, refused listeners and
// no secret.
func TestSections(t *testing.T) {
	serving(t, func(t *testing.T, c *client.Client) {
		status, text := get(t, c, "include_eds")
		sections, at := dumped(t, text)
		if want := slices.Insert(slices.Clone(without), 3, "EndpointsConfigDump"); status != 200 || !cmp.Equal(sections, want) {
			t.Errorf("%d: %q", status, sections)
		}
		if strings.Contains(text, marker) || strings.Contains(text, "TUFSSzNS") {
			t.Errorf("there is a secret in %s", text)
		}
		boot, clusters, listeners := &adminv3.BootstrapConfigDump{}, &adminv3.ClustersConfigDump{}, &adminv3.ListenersConfigDump{}
		endpoints, routes, secrets := &adminv3.EndpointsConfigDump{}, &adminv3.RoutesConfigDump{}, &adminv3.SecretsConfigDump{}
		for name, m := range map[string]proto.Message{
			"BootstrapConfigDump": boot, "ClustersConfigDump": clusters, "ListenersConfigDump": listeners,
			"EndpointsConfigDump": endpoints, "RoutesConfigDump": routes, "SecretsConfigDump": secrets,
		} {
			must(t, at[name].UnmarshalTo(m))
		}
		if id := boot.GetBootstrap().GetNode().GetId(); id != "edge-1" {
			t.Errorf("the node is %q", id)
		}
		active := clusters.GetDynamicActiveClusters()
		if clusters.GetVersionInfo() != "c1" || len(active) != 2 || active[0].GetClientStatus() != adminv3.ClientResourceStatus_ACKED || active[0].GetLastUpdated() == nil {
			t.Errorf("clusters: %v", clusters)
		}
		if a := new(clusterv3.Cluster); active[0].GetCluster().UnmarshalTo(a) != nil || a.GetName() != "a" {
			t.Errorf("the first cluster is %v", a)
		}
		ls := listeners.GetDynamicListeners()
		if len(ls) != 2 || ls[0].GetName() != "bad" || ls[0].GetActiveState() != nil || ls[0].GetErrorState().GetFailedConfiguration() == nil ||
			ls[1].GetActiveState().GetVersionInfo() != "l1" || listeners.GetVersionInfo() != "l1" {
			t.Errorf("listeners: %v", listeners)
		}
		s := &tlsv3.Secret{}
		must(t, secrets.GetDynamicActiveSecrets()[0].GetSecret().UnmarshalTo(s))
		if s.GetTlsCertificate().GetPrivateKey().GetInlineString() != "[redacted]" {
			t.Errorf("the secret is %v", s)
		}
		if len(endpoints.GetDynamicEndpointConfigs()) != 1 || len(routes.GetDynamicRouteConfigs()) != 1 {
			t.Errorf("endpoints %v, routes %v", endpoints, routes)
		}
		if sections, _ := dumped(t, must2(get(t, c, ""))); !cmp.Equal(sections, without) {
			t.Errorf("without endpoints: %q", sections)
		}
	})
}

func must2(_ int, text string) string { return text }

// The query is Envoy's.
func TestQuery(t *testing.T) {
	serving(t, func(t *testing.T, c *client.Client) {
		for query, want := range map[string]string{
			"resource=dynamic_active_clusters&mask=cluster.name":                     `[{"@type":".DynamicCluster","cluster":{"@type":".Cluster","name":"a"}},{"@type":".DynamicCluster","cluster":{"@type":".Cluster","name":"b"}}]`,
			"resource=dynamic_active_clusters&mask=version_info&name_regex=.":        `[{"@type":".DynamicCluster","version_info":"c1"},{"@type":".DynamicCluster","version_info":"c1"}]`,
			"resource=dynamic_active_clusters&mask=version_info,cluster&name_regex=": `[{"@type":".DynamicCluster","cluster":{"@type":".Cluster","name":"a"},"version_info":"c1"},{"@type":".DynamicCluster","cluster":{"@type":".Cluster","name":"b","transport_socket":{"name":"x","typed_config":{"@type":".Type"}}},"version_info":"c1"}]`,
			"resource=dynamic_listeners&mask=name&name_regex=i.":                     `[{"@type":".DynamicListener","name":"in"}]`,
			"resource=dynamic_listeners&mask=name&name_regex=i":                      `[]`,
			"resource=dynamic_listeners&mask=name&name_regex=%5CQin":                 `[{"@type":".DynamicListener","name":"in"}]`,
			"resource=static_clusters":                                               `[]`,
			"resource=dynamic_endpoint_configs&mask=version_info":                    `[{"@type":".DynamicEndpointConfig","version_info":"e1"}]`,
			"resource=bootstrap&mask=node.id":                                        `[{"@type":".Bootstrap","node":{"id":"edge-1"}}]`,
			"resource=dynamic_active_secrets&mask=secret.tls_certificate":            `[{"@type":".DynamicSecret","secret":{"@type":".Secret","tls_certificate":{"private_key":{"inline_string":"[redacted]"}}}}]`,
			"mask=bootstrap.node.id,dynamic_active_clusters.cluster.name,version_info&name_regex=a": `[{"@type":".BootstrapConfigDump","bootstrap":{"node":{"id":"edge-1"}}},` +
				`{"@type":".ClustersConfigDump","dynamic_active_clusters":[{"cluster":{"@type":".Cluster","name":"a"}}],"version_info":"c1"},{"@type":".EcdsConfigDump"},` +
				`{"@type":".ListenersConfigDump"},{"@type":".ScopedRoutesConfigDump"},{"@type":".RoutesConfigDump"},{"@type":".SecretsConfigDump"}]`,
			"resource=nothing":                                    "404 nothing not found in config dump",
			"resource=version_info":                               "404 version_info not found in config dump",
			"name_regex=(":                                        "400 name_regex: error parsing regexp: missing closing ): `(`",
			"name_regex=a)|(b":                                    "400 name_regex: error parsing regexp: unexpected ): `a)|(b`",
			"name_regex=(.{0,30}){30}":                            "400 name_regex: the expression has more than 500 steps with what it repeats",
			"name_regex=" + strings.Repeat("ab|", 400):            "400 name_regex: the expression has more than 1024 bytes",
			"mask=cluster.name":                                   `400 mask: there is no field "cluster"`,
			"resource=dynamic_active_clusters&mask=error_state.x": `400 mask: there is no field "error_state.x"`,
		} {
			status, text := get(t, c, query)
			if status != 200 {
				text = fmt.Sprint(status, " ", strings.TrimSpace(text))
			} else {
				text = plain(t, text)
			}
			if text != want {
				t.Errorf("%s:\n%s\nwant\n%s", query, text, want)
			}
		}
	})
}

// plain is the list of configs with sorted keys and short types.
func plain(t *testing.T, text string) string {
	t.Helper()
	var d struct{ Configs any }
	must(t, json.Unmarshal([]byte(text), &d))
	var short func(v any)
	short = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				short(e)
			}
		case map[string]any:
			for key, e := range v {
				if s, ok := e.(string); ok && key == "@type" {
					v[key] = s[strings.LastIndexByte(s, '.'):]
				}
				short(e)
			}
		}
	}
	short(d.Configs)
	out, err := json.Marshal(d.Configs)
	must(t, err)
	return string(out)
}

// A dump is read only. Without clients, and without a reader, nothing breaks.
func TestHandler(t *testing.T) {
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405, http.MethodDelete: 405} {
		w := httptest.NewRecorder()
		configdump.Handler().ServeHTTP(w, httptest.NewRequest(method, "/config_dump", nil))
		if w.Code != want || method == http.MethodHead && w.Body.Len() > 0 {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
		if method == http.MethodGet {
			if sections, _ := dumped(t, w.Body.String()); !cmp.Equal(sections, without) {
				t.Errorf("without clients: %q", sections)
			}
		}
	}
	if err := configdump.Write(io.Discard, configdump.Options{Resource: "x"}); !errors.Is(err, configdump.ErrNotFound) {
		t.Errorf("no such resource: %v", err)
	}
	closed, read := errors.New("closed"), 0
	if err := configdump.Write(&limited{err: closed}, configdump.Options{}, many{n: 1000, read: &read}); err != closed || read == 1000 {
		t.Errorf("a reader that goes: %v after %d", err, read)
	}
}

// limited takes some bytes.
type limited struct {
	taken int
	err   error
}

func (l *limited) Write(p []byte) (int, error) {
	if l.taken += len(p); l.taken > 100_000 {
		return 0, l.err
	}
	return len(p), nil
}

// many is a source of clusters of about a kilobyte.
type many struct {
	n    int
	read *int
}

func (many) Node() *corev3.Node { return nil }

func (m many) Resources(typeURL string) iter.Seq[configdump.Resource] {
	return func(yield func(configdump.Resource) bool) {
		if typeURL != cds.Type.TypeURL() {
			return
		}
		for i := range m.n {
			name := fmt.Sprintf("c-%06d", i)
			a, err := anypb.New(&clusterv3.Cluster{Name: name, AltStatName: strings.Repeat("x", 1000)})
			if err != nil {
				panic(err)
			}
			*m.read++
			if !yield(configdump.Resource{Name: name, Version: "1", Content: a, Updated: time.Unix(1, 0)}) {
				return
			}
		}
	}
}

// The dump of many resources is written while it is made.
func TestStreamed(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a dump of 22 MB")
	}
	read, most := 0, uint64(24<<20)
	grown := heapsize.While(func() { must(t, configdump.Write(io.Discard, configdump.Options{}, many{n: 20_000, read: &read})) })
	if read != 20_000 || grown > most {
		t.Errorf("%d read, the heap grew by %d bytes", read, grown)
	}
}

// A dump of which nothing is written, since no name matches, ends with its request too.
func TestReaderThatHasGone(t *testing.T) {
	serving(t, func(t *testing.T, c *client.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := httptest.NewRecorder()
		configdump.Handler(c).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/config_dump?resource=dynamic_active_clusters", nil))
		if body := w.Body.String(); strings.Contains(body, "name") {
			t.Errorf("resources are written though the request is over:\n%s", body)
		}
	})
}

// BenchmarkWrite writes the dump of a hundred thousand clusters that a client holds.
func BenchmarkWrite(b *testing.B) {
	srv := testutil.StartServer(b)
	boot, err := bootstrap.Server(srv.Target())
	must(b, err)
	c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: srv.DialOptions()}})
	must(b, err)
	defer c.Close()
	_, err = c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
	must(b, err)
	st, err := srv.Accept(b.Context())
	must(b, err)
	var all []proto.Message
	for i := range 100_000 {
		all = append(all, &clusterv3.Cluster{Name: fmt.Sprintf("c-%06d", i), AltStatName: strings.Repeat("x", 200)})
	}
	must(b, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", all...)))
	must(b, c.Ready(b.Context()))
	for name, o := range map[string]configdump.Options{"all": {}, "versions": {Mask: "dynamic_active_clusters.version_info"}} {
		b.Run(name, func(b *testing.B) {
			grown := heapsize.While(func() { must(b, configdump.Write(io.Discard, o, configdump.Of(c))) })
			b.ReportAllocs()
			for b.Loop() {
				must(b, configdump.Write(io.Discard, o, configdump.Of(c)))
			}
			b.ReportMetric(float64(grown)/(1<<20), "MiB-heap")
		})
	}
}
