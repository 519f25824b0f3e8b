package main

import (
	"encoding/json"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/encoding/protojson"

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

// A resource in JSON is protobuf JSON, whatever of it is redacted.
//
// spec: H-3
func TestRedactedIsReadable(t *testing.T) {
	t.Parallel()
	secret := secretOf("MARK3R") // with a key in bytes
	m := managed(t, secret)
	held := serveProcess(t, saying(&statusv3.ClientStatusResponse{Config: []*statusv3.ClientConfig{{GenericXdsConfigs: []*statusv3.ClientConfig_GenericXdsConfig{
		{TypeUrl: sds.Type.TypeURL(), Name: "s", XdsConfig: packed(secret)},
	}}}}))
	for _, args := range []string{
		"get -o json --server " + m.Addr() + " sds:s", "watch -o json --once --server " + m.Addr() + " sds:s",
		"csds -o json " + held, "dump --format json " + held,
	} {
		status, out, errs := runOnce(t, strings.Fields(args)...)
		_, text, _ := strings.Cut(out, `"resource":`)
		var read json.RawMessage
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&read); err != nil {
			t.Fatalf("%s: status %d, %v, %s%s", args, status, err, out, errs)
		}
		got := &tlsv3.Secret{}
		if err := protojson.Unmarshal(read, got); err != nil || string(got.GetTlsCertificate().GetPrivateKey().GetInlineBytes()) != "[redacted]" {
			t.Errorf("%s: %v, %s", args, err, read)
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
