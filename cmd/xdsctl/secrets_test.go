package main

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
)

// A Secret is printed without its content, unless that is asked for.
//
// spec: H-3
func TestShowSecrets(t *testing.T) {
	t.Parallel()
	const marker = "MARK3R"
	secret := &tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
		Secret: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: marker}},
	}}}
	for want, args := range map[string][]string{"[redacted]": {"sds:s"}, marker: {"--show-secrets", "sds:s"}} {
		srv := server(t)
		p := watchServer(t, srv.Target(), args...)
		st := accept(t, srv)
		send(t, st, testutil.SotW(sds.Type.TypeURL(), "1", "n1", secret))
		line := p.skipTo(`"event":"update"`)
		if !strings.Contains(line, `"inlineString":"`+want+`"`) || (want != marker) != !strings.Contains(line, marker) {
			t.Errorf("%v: %s", args, line)
		}
	}
}

// What gRPC itself takes may break a rule of the messages: they can be left out.
//
// spec: P-8
func TestNoValidate(t *testing.T) {
	t.Parallel()
	routes := &routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{{Domains: []string{"*"}}}} // without a name
	for want, args := range map[string][]string{`"event":"nack"`: {"rds:r"}, `"event":"ack"`: {"--no-validate", "rds:r"}} {
		srv := server(t)
		p := watchServer(t, srv.Target(), args...)
		st := accept(t, srv)
		send(t, st, testutil.SotW(rds.Type.TypeURL(), "1", "n1", routes))
		p.skipTo(want)
	}
}
