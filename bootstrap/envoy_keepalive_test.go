package bootstrap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// The keepalive of a management server's cluster is that of its connection, in either place
// where Envoy has it.
//
// spec: E-1 BOOTE-3
func TestEnvoyKeepalive(t *testing.T) {
	const options = `typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {` +
		`"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, KIND: {http2_protocol_options: {connection_keepalive: {interval: 30s, timeout: 5s}}}}}`
	const cluster = "envoy: static_resources.clusters[0].http2_protocol_options.connection_keepalive"
	older := func(text string) string { return `http2_protocol_options: {connection_keepalive: {` + text + `}}` }
	half := &bootstrap.GRPC{KeepaliveTime: 30 * time.Second, KeepaliveTimeout: 5 * time.Second}
	for name, c := range map[string]struct {
		options string
		want    bootstrap.Carrier
		notices []string
	}{
		"none":      {`http2_protocol_options: {}`, nil, nil},
		"now":       {strings.Replace(options, "KIND", "explicit_http_config", 1), half, nil},
		"by itself": {strings.Replace(options, "KIND", "auto_config", 1), half, nil},
		"both":      {older(`interval: 60s, timeout: 5s`) + ", " + strings.Replace(options, "KIND", "explicit_http_config", 1), half, nil},
		"before":    {older(`interval: 60s, timeout: 0.5s, interval_jitter: {value: 15}`), &bootstrap.GRPC{KeepaliveTime: time.Minute, KeepaliveTimeout: 500 * time.Millisecond}, nil},
		"idle":      {older(`connection_idle_interval: 60s, timeout: 1s`), &bootstrap.GRPC{KeepaliveTime: time.Minute, KeepaliveTimeout: time.Second}, nil},
		"often":     {older(`interval: 1s, timeout: 1s`), &bootstrap.GRPC{KeepaliveTime: 10 * time.Second, KeepaliveTimeout: time.Second}, []string{cluster + ".interval: is raised to 10s, the least that gRPC keeps to"}},
		"never":     {older(`timeout: 1s`), nil, []string{cluster + ": has no interval and no effect"}},
	} {
		t.Run(name, func(t *testing.T) {
			boot := parseAs(t, "envoy", envoyDoc(toCluster, `{name: c, `+assigned+`, `+c.options+`}`))
			if diff := cmp.Diff(c.want, boot.Servers[0].Carrier); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.notices, boot.Notices); diff != "" {
				t.Errorf("notices, -want +got:\n%s", diff)
			}
		})
	}
	for text, want := range map[string]string{
		`interval: 30s`:                ".timeout: required",
		`interval: 0s, timeout: 1s`:    `.interval = "0s": want at least "0.001s"`,
		`interval: 30s, timeout: 0s`:   `.timeout = "0s": want at least "0.001s"`,
		`intervall: 30s, timeout: 1s`:  `.intervall: is no field of this message; did you mean "interval"?`,
		`interval: 30, timeout: "1 s"`: `.interval = 30: want a duration in quotes with its unit, "30s"` + "\n" + cluster + `.timeout = "1 s": want a duration such as "1.5s", not negative`,
	} {
		wantError(t, envoyDoc(toCluster, `{name: c, `+assigned+`, `+older(text)+`}`), cluster+want)
	}
	plain, kept := bootstrap.ManagementServer{URI: "x:1"}, bootstrap.ManagementServer{URI: "x:1", Carrier: half}
	if plain.Key() == kept.Key() || plain.Key() != (bootstrap.ManagementServer{URI: "x:1", Carrier: &bootstrap.GRPC{}}).Key() {
		t.Error("a keepalive does not tell servers apart, or none does")
	}
}
