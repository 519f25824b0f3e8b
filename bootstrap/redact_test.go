package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// However a Config or a part of it is printed, what may be secret is not told.
//
// spec: H-3
func TestPrintingTellsNoSecret(t *testing.T) {
	const marker = "s3cret"
	config := json.RawMessage(`{"token":"` + marker + `"}`)
	server := bootstrap.ManagementServer{
		URI:     "x:1",
		Headers: []bootstrap.Header{{Key: "authorization", Value: marker}},
		ChannelCreds: bootstrap.ChannelCreds{Type: "mine", Config: config, TLS: &bootstrap.TLS{
			CACertificate: []byte(marker), Certificate: []byte(marker), PrivateKey: []byte(marker), ServerName: "shown",
		}},
		CallCreds: []bootstrap.CallCreds{{Type: "mine", Config: config}},
		Carrier: &bootstrap.REST{Endpoints: []bootstrap.RESTEndpoint{{
			Address: "y:1", ChannelCreds: bootstrap.ChannelCreds{Type: "mine", Config: config},
		}}},
	}
	boot := &bootstrap.Config{
		Servers: []bootstrap.ManagementServer{server}, DefaultSource: &bootstrap.Source{Servers: []bootstrap.ManagementServer{server}},
		Authorities:          map[string]bootstrap.Authority{"a": {Servers: []bootstrap.ManagementServer{server}}},
		CertificateProviders: map[string]bootstrap.CertificateProvider{"p": {PluginName: "p", Config: config}},
		AllowedGRPCServices:  map[string]bootstrap.GRPCService{"z": {ChannelCreds: server.ChannelCreds, CallCreds: server.CallCreds}},
	}
	hidden := []string{marker, fmt.Sprint([]byte(marker)), fmt.Sprintf("%x", marker), fmt.Sprintf("%#v", []byte(marker))[7:20]}
	for i, v := range []any{
		boot, *boot, server, &server, server.Headers, server.Headers[0], server.ChannelCreds, server.ChannelCreds.TLS,
		*server.ChannelCreds.TLS, server.CallCreds, server.REST(), *server.REST(), *boot.DefaultSource, boot.CertificateProviders, boot.AllowedGRPCServices,
	} {
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		texts := []string{log.String()}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			texts = append(texts, fmt.Sprintf(verb, v))
		}
		for _, text := range texts {
			for _, h := range hidden {
				if strings.Contains(text, h) {
					t.Errorf("value %d: %q is in %s", i, h, text)
				}
			}
		}
	}
	if text := fmt.Sprintf("%+v", server.ChannelCreds); !strings.Contains(text, "shown") || !strings.Contains(text, "mine") {
		t.Errorf("too little is told: %s", text)
	}
	other := server
	other.Headers = []bootstrap.Header{{Key: "authorization", Value: "another"}}
	if other.Key() == server.Key() {
		t.Error("servers that differ in a secret alone have one key")
	}
}
