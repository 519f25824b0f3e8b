package envoygateway

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
)

const envoyBootstrap = `
node: {id: me, cluster: default/eg}
dynamic_resources:
  ads_config:
    api_type: GRPC
    transport_api_version: V3
    set_node_on_first_message_only: true
    grpc_services: [{envoy_grpc: {cluster_name: xds_cluster}}]
static_resources:
  clusters:
  - name: xds_cluster
    type: STRICT_DNS
    connect_timeout: 10s
    load_assignment:
      cluster_name: xds_cluster
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 18000}}}}]}]
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: envoy-gateway
        common_tls_context:
          CERTIFICATES
          validation_context: {trusted_ca: {filename: DIR/certs/envoy/ca.crt}}
`

const certificates = `tls_certificates: [{certificate_chain: {filename: DIR/certs/envoy/tls.crt}, private_key: {filename: DIR/certs/envoy/tls.key}}]`

// connect makes a client with the certificate that Envoy Gateway made for Envoy, or another.
func connect(t *testing.T, g *gateway, certificates string, config client.Config) *client.Client {
	t.Helper()
	text := strings.NewReplacer("CERTIFICATES", strings.ReplaceAll(certificates, "DIR", g.dir), "DIR", g.dir).Replace(envoyBootstrap)
	boot, err := bootstrap.Parse("envoy", []byte(text))
	must(t, err)
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

// noLeak checks that no goroutine runs code of a client that was closed.
func noLeak(t *testing.T) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for range 100 {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "internal/engine.") && !strings.Contains(stacks, "xdswatch/transport.") {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("goroutines left behind:\n%s", buf)
}

// record is what a watch hears.
type record chan client.Event[any]

func (r record) hear(ev client.Event[any]) { r <- ev }

func (r record) hearAll(b client.Batch[any]) {
	for _, ev := range b.Events {
		r <- ev
	}
}

// await takes events until one is as wanted.
func (r record) await(t *testing.T, want string) client.Event[any] {
	t.Helper()
	deadline := time.After(time.Minute)
	var seen []string
	for {
		select {
		case ev := <-r:
			text := ev.Kind.String() + " " + ev.Name
			if cla, ok := ev.Value.(*endpointv3.ClusterLoadAssignment); ok {
				text += fmt.Sprint(" ", cla.Endpoints[0].LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress().GetPortValue())
			}
			if text == want {
				return ev
			}
			seen = append(seen, text)
		case <-deadline:
			t.Fatalf("no %q, only %q", want, seen)
		}
	}
}

func watch(t *testing.T, c *client.Client, kind resource.AnyType, name string) record {
	t.Helper()
	r := make(record, 1000)
	var err error
	if name == "*" {
		_, err = c.WatchAll(t.Context(), kind, name, r.hearAll)
	} else {
		_, err = c.Watch(t.Context(), kind, name, r.hear)
	}
	must(t, err)
	return r
}

// clusterOf is the name of a backend's cluster, and of its endpoints.
func clusterOf(backend string) string { return "httproute/default/" + backend + "/rule/0" }

// Each variant, aggregated and on the streams of single types: what there is, what comes,
// changes and goes; then the process is killed, and what another has is taken over.
func TestVariants(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		for _, streams := range []client.Streams{client.StreamsAggregated, client.StreamsPerType} {
			t.Run(fmt.Sprintf("variant %d streams %d", variant, streams), func(t *testing.T) {
				life(t, client.Config{Variant: variant, Streams: streams})
			})
		}
	}
}

func life(t *testing.T, config client.Config) {
	g := start(t, "one")
	c := connect(t, g, certificates, config)
	clusters, listeners := watch(t, c, cds.Type, "*"), watch(t, c, lds.Type, "*")
	ends, routes := watch(t, c, eds.Type, clusterOf("one")), watch(t, c, rds.Type, "default/eg/http")
	clusters.await(t, "updated "+clusterOf("one"))
	listeners.await(t, "updated default/eg/http")
	routes.await(t, "updated default/eg/http")
	ends.await(t, "updated "+clusterOf("one")+" 3000")
	must(t, c.Ready(t.Context()))

	g.set("one:3001", "two")
	clusters.await(t, "updated "+clusterOf("two"))
	two := watch(t, c, eds.Type, clusterOf("two"))
	two.await(t, "updated "+clusterOf("two")+" 3000")
	routes.await(t, "updated default/eg/http")
	ends.await(t, "updated "+clusterOf("one")+" 3001")

	g.set("two")
	clusters.await(t, "does not exist "+clusterOf("one"))

	g.kill()
	two.await(t, "ambient error "+clusterOf("two"))
	g.set("one:3002", "two:3003")
	g.begin()
	two.await(t, "updated "+clusterOf("two")+" 3003")
	ends.await(t, "updated "+clusterOf("one")+" 3002")
	clusters.await(t, "updated "+clusterOf("one"))
}

// Whoever has no certificate is not served, and hears why.
func TestNoCertificate(t *testing.T) {
	c := connect(t, start(t, "one"), "", client.Config{})
	ev := watch(t, c, lds.Type, "default/eg/http").await(t, "failed default/eg/http")
	if text := ev.Err.Error(); !strings.Contains(text, "certificate") {
		t.Errorf("the error is %q", text)
	}
}

// A refused response is sent again and again, and is answered a few times a second.
//
// spec: S-1
func TestNACK(t *testing.T) {
	g := start(t, "one")
	refused := make(chan client.AnswerInfo, 100_000)
	bad := errors.New("too few")
	c := connect(t, g, certificates, client.Config{
		Trace: &client.Trace{NACK: func(a client.AnswerInfo) { refused <- a }},
		Guards: map[string][]client.Guard{cds.Type.TypeURL(): {func(p *client.Proposal) error {
			if p.Left > 3 {
				return nil
			}
			return bad
		}}},
	})
	clusters, listeners := watch(t, c, cds.Type, "*"), watch(t, c, lds.Type, "*")
	listeners.await(t, "updated default/eg/http")
	clusters.await(t, "failed *")
	time.Sleep(3 * time.Second)
	if n := len(refused); n < 2 || n > 30 {
		t.Errorf("%d NACKs in three seconds", n)
	}
	g.set("one", "two", "three", "four")
	clusters.await(t, "updated "+clusterOf("four"))
}
