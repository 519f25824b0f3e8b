package bootstrap_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// grpcDoc is a bootstrap of one server with these channel_creds.
func grpcDoc(creds string) string {
	return `{"xds_servers":[{"server_uri":"x:1","channel_creds":` + creds + `}]}`
}

// What a credential says and this program cannot do is no reason to take the next one.
//
// spec: H-7 BOOT-3
func TestChannelCredsFailClosed(t *testing.T) {
	const (
		at   = "boot: xds_servers[0].channel_creds[0]"
		hint = `; bootstrap.AllowNextChannelCreds lets the next entry stand for it`
		own  = `cannot be made here, unless the option bootstrap.WithChannelCreds does` + hint
	)
	for name, c := range map[string]struct{ creds, want string }{
		"google_default": {`[{"type":"google_default"},{"type":"insecure"}]`, at + `.type = "google_default": cannot be made here; "google_default" needs the option ` +
			`bootstrap.WithChannelCreds(googledefault.Type, googledefault.New) of package github.com/xdswatch/xdswatch/transport/googledefault` + hint},
		"alts":             {`[{"type":"alts"},{"type":"insecure"}]`, at + `.type = "alts": ` + own},
		"xds":              {`[{"type":"xds"},{"type":"insecure"}]`, at + `.type = "xds": ` + own},
		"a misspelt type":  {`[{"type":"tsl"},{"type":"insecure"}]`, at + `.type = "tsl": is no known type; did you mean "tls"?`},
		"SPIFFE":           {`[{"type":"tls","config":{"spiffe_trust_bundle_map_file":"m"}},{"type":"insecure"}]`, at + `.config.spiffe_trust_bundle_map_file = "m": is not supported; bootstrap.AllowNextChannelCreds lets the next entry stand for this one`},
		"a misspelt key":   {`[{"type":"tls","config":{"ca_certficate_file":"s3cret"}}]`, at + `.config.ca_certficate_file: is not known here; did you mean "ca_certificate_file"?`},
		"a plain one":      {`[{"type":"insecure","config":{"ca_certificate_file":"f"}}]`, at + `.config.ca_certificate_file: is not known here`},
		"a misspelt entry": {`[{"type":"tls","confg":{"ca_certificate_file":"f"}}]`, at + `.confg: is not known here; did you mean "config"?`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bootstrap.Parse("boot", []byte(grpcDoc(c.creds)))
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
	const call = `{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls"}],"call_creds":[{"type":"jwt_token_file","config":{"jwt_token_file":"f","jwt_tokenfile":"a"}}]}]}`
	if _, err := bootstrap.Parse("boot", []byte(call)); err == nil || err.Error() != "boot: xds_servers[0].call_creds[0].config.jwt_tokenfile: is not known here; did you mean \"jwt_token_file\"?" {
		t.Errorf("a key of a call credential: %v", err)
	}
}

// An option allows the next credential, and each that is passed over is told.
//
// spec: H-7
func TestAllowNextChannelCreds(t *testing.T) {
	const at = "boot: xds_servers[0].channel_creds"
	mine := bootstrap.WithChannelCreds("mine", func(json.RawMessage) (credentials.Bundle, error) { return nil, nil })
	for name, c := range map[string]struct {
		creds, want string
		notices     []string
	}{
		"gRPC's own": {`[{"type":"google_default"},{"type":"tsl"},{"type":"insecure"}]`, "insecure", []string{
			at + `[0].type: "google_default" cannot be made here; the next entry stands for it`,
			at + `[1].type: "tsl" cannot be made here; the next entry stands for it`,
		}},
		"SPIFFE":     {`[{"type":"tls","config":{"spiffe_trust_bundle_map_file":"m"}},{"type":"tls","config":{}}]`, "tls", []string{at + `[0].type: "tls" cannot be made here; the next entry stands for it`}},
		"the first":  {`[{"type":"mine"},{"type":"google_default"}]`, "mine", nil},
		"of someone": {`[{"type":"loas"},{"type":"mine"}]`, "mine", []string{at + `[0].type: "loas" cannot be made here; the next entry stands for it`}},
	} {
		boot, err := bootstrap.Parse("boot", []byte(grpcDoc(c.creds)), mine, bootstrap.AllowNextChannelCreds())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := boot.Servers[0].ChannelCreds.Type; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if diff := cmp.Diff(c.notices, boot.Notices, sameConfig); diff != "" {
			t.Errorf("%s: notices, -want +got:\n%s", name, diff)
		}
	}
	const pkg = "type.googleapis.com/envoy.extensions.grpc_service.channel_credentials."
	plugins := envoyDoc(`{google_grpc: {target_uri: "x:1", channel_credentials_plugin: [{"@type": `+pkg+`google_default.v3.GoogleDefaultCredentials}, `+
		`{"@type": `+pkg+`tls.v3.TlsCredentials}, {"@type": `+pkg+`insecure.v3.InsecureCredentials}]}}`, "")
	if _, err := bootstrap.Parse("envoy", []byte(plugins)); err == nil {
		t.Error("Envoy's plugins: what is next is taken")
	}
	tlsFirst := strings.Replace(plugins, `{"@type": `+pkg+`google_default.v3.GoogleDefaultCredentials}, `, "", 1)
	wantError(t, tlsFirst, "envoy: dynamic_resources.ads_config.grpc_services[0].google_grpc.channel_credentials_plugin[0]: "+
		strings.TrimPrefix(pkg, "type.googleapis.com/")+"tls.v3.TlsCredentials cannot be made here; bootstrap.AllowNextChannelCreds lets the next entry stand for it")
	boot, err := bootstrap.Parse("envoy", []byte(plugins), bootstrap.AllowNextChannelCreds())
	if err != nil || boot.Servers[0].ChannelCreds.Type != "insecure" || len(boot.Notices) != 2 {
		t.Errorf("Envoy's plugins: %+v, %v", boot, err)
	}
}

// What a bootstrap says in vain is noticed, with what was probably meant.
//
// spec: U-9 E-4 BOOT-5
func TestNotices(t *testing.T) {
	const insecure = `"channel_creds":[{"type":"insecure"}]`
	server := func(uri, more string) string {
		return `{"xds_servers":[{"server_uri":"` + uri + `",` + insecure + more + `}]}`
	}
	root := func(more string) string {
		return `{"xds_servers":[{"server_uri":"x:1",` + insecure + `}],` + more + `}`
	}
	const uri, unknown = "boot: xds_servers[0].server_uri: ", " is not known here and has no effect"
	const noPort = uri + "has no port, so that gRPC takes 443; a port is written HOST:PORT"
	for name, c := range map[string]struct {
		doc  string
		want []string
	}{
		"http":              {server("http://x:1", ""), []string{uri + `"http" is no scheme that gRPC knows; did you mean "dns:///HOST:PORT"?`}},
		"a scheme":          {server("dsn:///x:1", ""), []string{uri + `"dsn" is no scheme that gRPC knows; did you mean "dns"?`}},
		"no port":           {server("x.example", ""), []string{noPort}},
		"no port, resolved": {server("dns:///x.example", ""), []string{noPort}},
		"no port, IPv6":     {server("dns://[::1]:53/[::2]", ""), []string{noPort}},
		"ports":             {server("dns:///[::1]:1", ""), nil},
		"a socket":          {server("unix:///x", ""), nil},
		"a program's own":   {server("mine:///x", ""), nil},
		"a feature":         {server("x:1", `,"server_features":["xdswatch.dleta","xds_v3","trusted_xds_server"]`), []string{`boot: xds_servers[0].server_features[0]: "xdswatch.dleta" is no feature that this client knows; did you mean "xdswatch.delta"?`}},
		"of a server":       {server("x:1", `,"server_feature":["xdswatch.delta"]`), []string{`boot: xds_servers[0].server_feature:` + unknown + `; did you mean "server_features"?`}},
		"of the document":   {root(`"authority":{},"comment":"x"`), []string{`boot: authority:` + unknown, `boot: comment:` + unknown}},
		"of the node":       {root(`"node":{"meta_data":{},"locality":{"zones":""}}`), []string{`boot: node.meta_data:` + unknown + `; did you mean "metadata"?`, `boot: node.locality.zones:` + unknown + `; did you mean "zone"?`}},
		"of an authority":   {root(`"authorities":{"a":{"xds_server":[]}}`), []string{`boot: authorities["a"].xds_server:` + unknown + `; did you mean "xds_servers"?`}},
		"of a provider":     {root(`"certificate_providers":{"a":{"plugin_name":"x","configs":{}}}`), []string{`boot: certificate_providers["a"].configs:` + unknown + `; did you mean "config"?`}},
		"all that is known": {root(`"authorities":{"a":{"fallback_on_reachability_only":true,"xds_servers":[{"server_uri":"y:1",` + insecure + `,"server_features":["trusted_xds_server"]}]}},"allowed_grpc_services":{"z:1":{` + insecure + `,"call_creds":[]}}`), nil},
		"of a credential":   {`{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls","config":{"verify":true}}],"call_creds":[{"type":"jwt_token_file","config":{"jwt_token_file":"f","audience":"a"}}]}]}`, []string{`boot: xds_servers[0].channel_creds[0].config.verify:` + unknown, `boot: xds_servers[0].call_creds[0].config.audience:` + unknown, `boot: the token file "f" cannot be opened now: no such file or directory`}},
		"a call credential": {server("x:1", `,"call_creds":[{"type":"jwt_token_fiel"}]`), []string{`boot: xds_servers[0].call_creds[0].type: "jwt_token_fiel" is no type that this program knows and is not sent; did you mean "jwt_token_file"?`}},
	} {
		t.Run(name, func(t *testing.T) {
			boot := parseAs(t, "boot", c.doc)
			if diff := cmp.Diff(c.want, boot.Notices); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	const want = `boot: xds_servers: required (nor has the document any field of an Envoy bootstrap); did you mean that by "xds_server"?`
	if _, err := bootstrap.Parse("boot", []byte(`{"xds_server":[]}`)); err == nil || err.Error() != want {
		t.Errorf("no servers: %v", err)
	}
}

func parseAs(t *testing.T, source, doc string) *bootstrap.Config {
	t.Helper()
	boot, err := bootstrap.Parse(source, []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return boot
}

// Files that are not there are noticed when the bootstrap is read, each once.
//
// spec: U-9
func TestMissingFilesAreNoticed(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := `{"server_uri":"x:1","channel_creds":[{"type":"tls","config":{"ca_certificate_file":"DIR/ca","certificate_file":"DIR/there","private_key_file":"DIR"}}],` +
		`"call_creds":[{"type":"jwt_token_file","config":{"jwt_token_file":"DIR/token"}}]}`
	doc := strings.ReplaceAll(`{"xds_servers":[`+server+`],"authorities":{"a":{"xds_servers":[`+server+`]}}}`, "DIR", dir)
	want := []string{
		`boot: the CA certificate file "` + dir + `/ca" cannot be opened now: no such file or directory`,
		`boot: the private key file "` + dir + `" cannot be opened now: not a regular file`,
		`boot: the token file "` + dir + `/token" cannot be opened now: no such file or directory`,
	}
	if diff := cmp.Diff(want, parseAs(t, "boot", doc).Notices); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	own := ownDoc(`"lds_config":{"path":"` + dir + `/lds"},"cds_config":{"path":"` + there + `"},` +
		`"lds_resources_locator":"file://` + dir + `/a%20list#alt=xdstp%3A//x/a","cds_resources_locator":"file://` + there + `"`)
	want = []string{
		`boot: the file "` + dir + `/lds" cannot be opened now: no such file or directory`,
		`boot: the file "` + dir + `/a list" cannot be opened now: no such file or directory`,
	}
	if diff := cmp.Diff(want, parseAs(t, "boot", own).Notices); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A fault says how to write the value.
//
// spec: U-10
func TestYAMLFaults(t *testing.T) {
	const server = "xds_servers: [{server_uri: 'x:1', channel_creds: [{type: tls, config: CONFIG}]}]\n"
	with := func(config string) string { return strings.Replace(server, "CONFIG", config, 1) }
	const words = ", which y, n, yes, no, on and off are in YAML too; put the text in quotes"
	const interval = "boot: xds_servers[0].channel_creds[0].config.refresh_interval = "
	for name, c := range map[string]struct{ doc, want string }{
		"a word":            {"node: {id: n}\n" + with("{}"), "boot: node.id = false: want a string, is a boolean" + words},
		"a number":          {"node: {id: 12}\n" + with("{}"), "boot: node.id = 12: want a string, is a number; put the text in quotes"},
		"a tab":             {"node:\n\tid: a\n", "boot: line 2: yaml: the line begins with a tab; YAML wants spaces"},
		"a tab of many":     {"node:\n  id: a\nxds_servers:\n  - server_uri: a\n  \tchannel_creds: []\n", "boot: line 5: yaml: the line begins with a tab; YAML wants spaces"},
		"no unit":           {with("{refresh_interval: 600}"), interval + `600: want a duration in quotes with its unit, "600s"`},
		"a fraction":        {with("{refresh_interval: 0.5}"), interval + `0.5: want a duration in quotes with its unit, "0.5s"`},
		"of JSON":           {`{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls","config":{"refresh_interval":600}}]}]}`, interval + `600: want a duration in quotes with its unit, "600s"`},
		"negative":          {with("{refresh_interval: -1}"), interval + `-1: want a string, is a number; put the text in quotes`},
		"JSON needs no tip": {`{"node":{"id":false},"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls"}]}]}`, "boot: node.id = false: want a string, is a boolean"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bootstrap.Parse("boot", []byte(c.doc))
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
	// A tab in a value, or in a comment, does no harm.
	parse(t, "# a\tcomment\nnode: {id: \"a\tb\"}\n"+with("{}"))
}
