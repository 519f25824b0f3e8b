package envoygateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/realtest"
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
	realtest.Must(t, err)
	config.Bootstrap = boot
	return realtest.Client(t, config)
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
	clusters, listeners := realtest.Watch(t, c, cds.Type, "*"), realtest.Watch(t, c, lds.Type, "*")
	ends, routes := realtest.Watch(t, c, eds.Type, clusterOf("one")), realtest.Watch(t, c, rds.Type, "default/eg/http")
	clusters.Await(t, "updated "+clusterOf("one"))
	listeners.Await(t, "updated default/eg/http")
	routes.Await(t, "updated default/eg/http")
	ends.Await(t, "updated "+clusterOf("one")+" 3000")
	realtest.Must(t, c.Ready(t.Context()))

	g.set("one:3001", "two")
	clusters.Await(t, "updated "+clusterOf("two"))
	two := realtest.Watch(t, c, eds.Type, clusterOf("two"))
	two.Await(t, "updated "+clusterOf("two")+" 3000")
	routes.Await(t, "updated default/eg/http")
	ends.Await(t, "updated "+clusterOf("one")+" 3001")

	g.set("two")
	clusters.Await(t, "does not exist "+clusterOf("one"))

	g.kill()
	two.Await(t, "ambient error "+clusterOf("two"))
	g.set("one:3002", "two:3003")
	g.begin()
	two.Await(t, "updated "+clusterOf("two")+" 3003")
	ends.Await(t, "updated "+clusterOf("one")+" 3002")
	clusters.Await(t, "updated "+clusterOf("one"))
}

// Whoever has no certificate is not served, and hears why.
func TestNoCertificate(t *testing.T) {
	c := connect(t, start(t, "one"), "", client.Config{})
	ev := realtest.Watch(t, c, lds.Type, "default/eg/http").Await(t, "failed default/eg/http")
	if text := ev.Err.Error(); !strings.Contains(text, "certificate") {
		t.Errorf("the error is %q", text)
	}
}

// A refused response is sent again and again, and is answered a few times a second.
//
// spec: S-1
func TestNACK(t *testing.T) {
	g := start(t, "one")
	refused := make(chan time.Time, 100_000)
	bad := errors.New("too few")
	c := connect(t, g, certificates, client.Config{
		Trace: &client.Trace{NACK: func(client.AnswerInfo) { refused <- time.Now() }},
		Guards: map[string][]client.Guard{cds.Type.TypeURL(): {func(p *client.Proposal) error {
			if p.Left > 3 {
				return nil
			}
			return bad
		}}},
	})
	clusters, listeners := realtest.Watch(t, c, cds.Type, "*"), realtest.Watch(t, c, lds.Type, "*")
	listeners.Await(t, "updated default/eg/http")
	clusters.Await(t, "failed *")
	var times [16]time.Time
	for i, late := 0, time.After(realtest.Patience); i < len(times); i++ {
		select {
		case times[i] = <-refused:
		case <-late:
			t.Fatalf("%d NACKs in %v", i, realtest.Patience)
		}
	}
	if d := times[15].Sub(times[0]); d < time.Second { // a loop that is not slowed down makes hundreds
		t.Errorf("16 NACKs in %v", d)
	}
	g.set("one", "two", "three", "four")
	clusters.Await(t, "updated "+clusterOf("four"))
}

// The view resolves everything that Envoy Gateway makes of its routes, from the listener to the
// endpoints. It follows what comes, changes and goes, and another process with another state.
func TestResolve(t *testing.T) {
	for _, variant := range []client.Variant{client.VariantSotW, client.VariantDelta} {
		t.Run(fmt.Sprint("variant ", variant), func(t *testing.T) {
			g := start(t, "one", "two")
			r := realtest.Resolve(t, connect(t, g, certificates, client.Config{Variant: variant}))
			const listener, domain = "default/eg/http", ".example.com"
			names := r.Await(listener, domain, realtest.Hosts{"one.example.com": at(3000), "two.example.com": at(3000)})
			for _, want := range []string{clusterOf("one"), clusterOf("two")} {
				if !slices.Contains(names, want) {
					t.Errorf("clusters %q lack %q", names, want)
				}
			}
			g.set("one:3001", "two", "three:3003")
			r.Await(listener, domain, realtest.Hosts{"one.example.com": at(3001), "two.example.com": at(3000), "three.example.com": at(3003)})
			g.set("one:3001", "three:3003")
			r.Await(listener, domain, realtest.Hosts{"one.example.com": at(3001), "three.example.com": at(3003)})

			g.kill()
			g.set("one:3002", "four")
			g.begin()
			r.Await(listener, domain, realtest.Hosts{"one.example.com": at(3002), "four.example.com": at(3000)})
		})
	}
}

// at is the address of a backend.
func at(port int) []string { return []string{fmt.Sprint("127.0.0.1:", port)} }
