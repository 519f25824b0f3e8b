package v2

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/rtds"
	"github.com/xdswatch/xdswatch/resource/sds"
)

const prefix = "type.googleapis.com/"

// types are those that the server has, with their type URLs of version 2.
var types = []struct {
	short, url string
	kind       resource.AnyType
}{
	{"cds", prefix + "envoy.api.v2.Cluster", cds.Type},
	{"eds", prefix + "envoy.api.v2.ClusterLoadAssignment", eds.Type},
	{"lds", prefix + "envoy.api.v2.Listener", lds.Type},
	{"rds", prefix + "envoy.api.v2.RouteConfiguration", rds.Type},
	{"sds", prefix + "envoy.api.v2.auth.Secret", sds.Type},
	{"rtds", prefix + "envoy.service.discovery.v2.Runtime", rtds.Type},
}

// connect makes a client by an Envoy bootstrap.
func connect(t *testing.T, s *server, api string, config client.Config) *client.Client {
	t.Helper()
	return connectTo(t, bootstrapOf(t, s.Addrs[0], fmt.Sprintf(`
dynamic_resources:
  cds_config: {resource_api_version: V2, ads: {}}
  ads_config:
    api_type: %s
    transport_api_version: V2
    grpc_services: [{envoy_grpc: {cluster_name: xds}}]
`, api)), config)
}

// bootstrapOf is an Envoy bootstrap with a part of its own and a cluster xds.
func bootstrapOf(t *testing.T, addr, own string) *bootstrap.Config {
	t.Helper()
	host, port, _ := strings.Cut(addr, ":")
	boot, err := bootstrap.Parse("envoy", fmt.Appendf(nil, `
node: {id: node, cluster: test}
%s
static_resources:
  clusters:
  - name: xds
    type: STATIC
    http2_protocol_options: {}
    load_assignment:
      cluster_name: xds
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
`, own, host, port), bootstrap.AllowV2())
	must(t, err)
	return boot
}

func connectTo(t *testing.T, boot *bootstrap.Config, config client.Config) *client.Client {
	t.Helper()
	config.Bootstrap = boot
	config.Backoff = func() backoff.BackOff { return backoff.NewConstantBackOff(20 * time.Millisecond) }
	c, err := client.New(config)
	must(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		noLeak(t)
	})
	return c
}

// await takes events until all that are wanted have come, in any order, and returns that of
// the first.
func await(t *testing.T, events <-chan client.Event[any], wants ...string) client.Event[any] {
	t.Helper()
	deadline := time.After(time.Minute)
	came := map[string]client.Event[any]{}
	var seen []string
	for {
		select {
		case ev := <-events:
			text := ev.Kind.String() + " " + ev.Name
			if c, ok := ev.Value.(interface{ GetAltStatName() string }); ok && ev.Kind == client.EventUpdated {
				text += " " + c.GetAltStatName()
			}
			seen = append(seen, text)
			if slices.Contains(wants, text) {
				came[text] = ev
			}
			if len(came) == len(wants) {
				return came[wants[0]]
			}
		case <-deadline:
			t.Fatalf("no %q, only %q", wants, seen)
		}
	}
}

// everyType watches a resource of each type.
func everyType(t *testing.T, c *client.Client, opts ...client.WatchOption) map[string]chan client.Event[any] {
	t.Helper()
	told := map[string]chan client.Event[any]{}
	for _, typ := range types {
		events := make(chan client.Event[any], 100)
		told[typ.short] = events
		_, err := c.Watch(t.Context(), typ.kind, "x", func(ev client.Event[any]) { events <- ev }, opts...)
		must(t, err)
	}
	return told
}

// Every type that go-control-plane served in version 2, on one stream and on one each:
// values, changes, absence.
//
// spec: V2-1 V2-2 V2-3
func TestSotW(t *testing.T) {
	for _, streams := range []client.Streams{client.StreamsAggregated, client.StreamsPerType} {
		t.Run(fmt.Sprintf("streams %d", streams), func(t *testing.T) {
			s := start(t)
			s.Set("1 cds:x=one eds:x lds:x rds:x sds:x rtds:x")
			told := everyType(t, connect(t, s, "GRPC", client.Config{Streams: streams}))
			for _, typ := range types {
				want := "updated x"
				if typ.short == "cds" {
					want += " one"
				}
				ev := await(t, told[typ.short], want)
				if url := prefix + string(ev.Value.(proto.Message).ProtoReflect().Descriptor().FullName()); url != typ.kind.TypeURL() {
					t.Errorf("%s: the value is a %s", typ.short, url)
				}
				s.await("ACK of "+typ.short, func(r request) bool {
					return r.TypeURL == typ.url && r.Version == "1" && r.Nonce != "" && r.Error == ""
				})
			}
			s.Set("2 cds:y=two cds:x=two eds:x lds:y rds:x sds:x rtds:x")
			await(t, told["cds"], "updated x two")
			await(t, told["lds"], "does not exist x")
			checkRequests(t, s, streams)
		})
	}
}

// checkRequests: all is asked in the words of version 2, and a stream's first request has a
// node that says the build.
func checkRequests(t *testing.T, s *server, streams client.Streams) {
	t.Helper()
	methods, nodes := map[string]bool{}, 0
	for _, r := range s.all() {
		if r.Node == "node" && strings.HasPrefix(r.Build, "xdswatch/") {
			nodes++
		}
		if !strings.Contains(r.TypeURL, "v2") {
			t.Errorf("asked for %s", r.TypeURL)
		}
		methods[r.Method] = true
	}
	want := 1
	if streams == client.StreamsPerType {
		want = len(types)
	}
	if len(methods) != want || nodes != want {
		t.Errorf("asked by %v and with %d nodes, want %d of each", methods, nodes, want)
	}
}

// watchAll follows all clusters.
func watchAll(t *testing.T, c *client.Client) chan client.Event[any] {
	t.Helper()
	events := make(chan client.Event[any], 1000)
	_, err := c.WatchAll(t.Context(), cds.Type, "*", func(b client.Batch[any]) {
		for _, ev := range b.Events {
			events <- ev
		}
	})
	must(t, err)
	return events
}

// A bad cluster is refused under the URL of version 2, and the last good one is kept.
//
// spec: V2-2
func TestWildcardAndNACK(t *testing.T) {
	s := start(t)
	s.Set("1 cds:a=one cds:b=one")
	events := watchAll(t, connect(t, s, "GRPC", client.Config{}))
	await(t, events, "synced *")
	first := s.await("wildcard", func(r request) bool { return r.Nonce == "" })
	if len(first.Names) != 0 || first.TypeURL != types[0].url {
		t.Errorf("the wildcard is %+v", first)
	}
	s.Set("2 cds:a=! cds:c=two")
	ev := await(t, events, "ambient error a", "updated c two")
	if c, ok := ev.Value.(interface{ GetAltStatName() string }); ok && c.GetAltStatName() == "!" {
		t.Error("the bad value came through")
	}
	nack := s.await("NACK", func(r request) bool { return r.Error != "" })
	if nack.TypeURL != types[0].url || nack.Version != "1" || nack.Nonce == "" || !strings.Contains(nack.Error, "ConnectTimeout") {
		t.Errorf("the NACK is %+v", nack)
	}
	s.Set("3 cds:a=three")
	await(t, events, "updated a three")
}

// The incremental variant, with responses that say their type and, as once, without.
//
// spec: V2-2 V2-4
func TestDelta(t *testing.T) {
	for _, streams := range []client.Streams{client.StreamsAggregated, client.StreamsPerType} {
		for _, args := range [][]string{nil, {"-untyped"}} {
			t.Run(fmt.Sprintf("streams %d %s", streams, strings.Join(args, " ")), func(t *testing.T) {
				s := start(t, args...)
				s.Set("1 cds:a=one cds:b=one eds:e")
				c := connect(t, s, "DELTA_GRPC", client.Config{Streams: streams})
				events := watchAll(t, c)
				await(t, events, "synced *")
				ends := make(chan client.Event[any], 100)
				_, err := c.Watch(t.Context(), eds.Type, "e", func(ev client.Event[any]) { ends <- ev })
				must(t, err)
				await(t, ends, "updated e")
				s.Set("2 cds:a=! cds:b=one cds:c=two")
				await(t, events, "updated c two")
				await(t, ends, "does not exist e")
				nack := s.await("NACK", func(r request) bool { return r.Error != "" })
				if nack.TypeURL != types[0].url || nack.Nonce == "" {
					t.Errorf("the NACK is %+v", nack)
				}
				s.Set("3 cds:c=two")
				await(t, events, "does not exist b")
				if i := slices.IndexFunc(s.all(), func(r request) bool {
					return !strings.Contains(r.Method, "v2.") || !strings.Contains(r.Method, "/Delta")
				}); i >= 0 {
					t.Errorf("asked by %s", s.all()[i].Method)
				}
			})
		}
	}
}

// Every type over REST: go-control-plane's gateway refuses a request with a field that
// version 2 has not.
//
// spec: V2-1 V2-2 V2-3
func TestREST(t *testing.T) {
	s := start(t)
	s.Set("1 cds:x=one eds:x lds:x rds:x sds:x rtds:x")
	boot := bootstrapOf(t, s.Addrs[1], `
dynamic_resources:
  cds_config:
    resource_api_version: V2
    api_config_source:
      api_type: REST
      transport_api_version: V2
      cluster_names: [xds]
      refresh_delay: 0.02s
      request_timeout: 30s
  ads_config:
    api_type: GRPC
    grpc_services: [{google_grpc: {target_uri: "127.0.0.1:1"}}]
`)
	told := everyType(t, connectTo(t, boot, client.Config{}), client.FromSource(*boot.Startup[0].Source))
	for _, typ := range types {
		want := "updated x"
		if typ.short == "cds" {
			want += " one"
		}
		ev := await(t, told[typ.short], want)
		if url := prefix + string(ev.Value.(proto.Message).ProtoReflect().Descriptor().FullName()); url != typ.kind.TypeURL() {
			t.Errorf("%s: the value is a %s", typ.short, url)
		}
		r := s.await("poll of "+typ.short, func(r request) bool { return r.TypeURL == typ.url && r.Version == "1" })
		if r.Method != "poll" || r.Node != "node" || !strings.HasPrefix(r.Build, "xdswatch/") || !slices.Equal(r.Names, []string{"x"}) {
			t.Errorf("%s: asked %+v", typ.short, r)
		}
	}
	s.Set("2 cds:x=! eds:x lds:y rds:x sds:x rtds:x")
	await(t, told["cds"], "ambient error x")
	await(t, told["lds"], "does not exist x")
	s.await("NACK", func(r request) bool {
		return r.TypeURL == types[0].url && r.Version == "1" && strings.Contains(r.Error, "ConnectTimeout")
	})
	s.Set("3 cds:x=three")
	await(t, told["cds"], "updated x three")
}
