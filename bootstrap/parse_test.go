package bootstrap_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/xdswatch/xdswatch/bootstrap"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"
)

func parse(t *testing.T, doc string, opts ...bootstrap.Option) *bootstrap.Config {
	t.Helper()
	boot, err := bootstrap.Parse("boot", []byte(doc), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return boot
}

// What Istio's agent writes for gRPC: four slashes, a field of null, an empty locality.
//
// spec: S-27
func TestPilotAgent(t *testing.T) {
	boot, err := bootstrap.Load("testdata/pilot_agent.json")
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := structpb.NewStruct(map[string]any{
		"GENERATOR": "grpc", "INSTANCE_IPS": "10.4.0.7", "PILOT_SAN": []any{"istiod.istio-system.svc"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &bootstrap.Config{
		Node: &corev3.Node{Id: "sidecar~10.4.0.7~orders-1.shop~shop.svc.cluster.local", Metadata: metadata},
		Servers: []bootstrap.ManagementServer{
			{URI: "unix:////etc/istio/proxy/XDS", ChannelCreds: bootstrap.Insecure()},
		},
		ClientDefaultListenerTemplate: "%s",
		ServerListenerTemplate:        "xds.istio.io/grpc/lds/inbound/%s",
		CertificateProviders: map[string]bootstrap.CertificateProvider{"default": {
			PluginName: "file_watcher",
			Config: json.RawMessage(`{"ca_certificate_file":"/var/lib/istio/data/root-cert.pem",` +
				`"certificate_file":"/var/lib/istio/data/cert-chain.pem",` +
				`"private_key_file":"/var/lib/istio/data/key.pem","refresh_interval":"900s"}`),
		}},
	}
	if diff := cmp.Diff(want, boot, sameConfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestErrorTexts(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, c := range map[string]struct{ doc, want string }{
		"empty":            {"", "boot: is empty"},
		"blank":            {"\uFEFF \n\t", "boot: is empty"},
		"list":             {"[]", "boot: want an object, is a list"},
		"prose":            {"hello", "boot: want an object, is a string"},
		"JSON":             {"{\n  \"node\": {},\n  oops\n}", "boot: line 3, column 3: invalid character 'o' looking for beginning of object key string"},
		"JSON after a BOM": {"\uFEFF{x}", "boot: line 1, column 2: invalid character 'x' looking for beginning of object key string"},
		"two documents":    {"{}\n{}", "boot: line 2, column 1: invalid character '{' after top-level value"},
		"not UTF-8":        {"{\"node\":\n\"\xff\"}", "boot: line 2, column 2: text is not UTF-8"},
		"YAML":             {"node:\n  id: a\n b: c\n", "boot: line 2: yaml: did not find expected key"},
		"YAML documents":   {"node: {}\n---\nnode: {}\n", "boot: yaml: more than one document"},
		"YAML document 3":  {"node: {}\n---\n---\nnode: {}\n", "boot: yaml: more than one document"},
		"YAML end":         {"node: {}\n...\nnode: {}\n", "boot: line 2: yaml: did not find expected <document start>"},
		"YAML after":       {"node: {}\n---\n}", "boot: line 2: yaml: did not find expected node content"},
		"YAML twice":       {"node: {}\nnode: {}\n", "boot: line 2: yaml: a key is there twice"},
		"null server":      {`{"xds_servers":[null]}`, "boot: xds_servers[0]: want an object, is null"},
		"wrong shapes": {
			`{"xds_servers":{},"authorities":[],"allowed_grpc_services":1,"node":"n","client_default_listener_resource_name_template":["%s"]}`,
			"boot: node: want an object, is a string\n" +
				"boot: xds_servers: want a list, is an object\n" +
				"boot: authorities: want an object, is a list\n" +
				"boot: client_default_listener_resource_name_template: want a string, is a list\n" +
				"boot: allowed_grpc_services: want an object, is a number",
		},
		"credentials": {
			`{"xds_servers":[{"server_uri":"x:1","channel_creds":[]},{"server_uri":"y:1","channel_creds":"tls"},` +
				`{"server_uri":"z:1","channel_creds":[null,{"type":"loas"}]}]}`,
			"boot: xds_servers[0].channel_creds: must not be empty\n" +
				"boot: xds_servers[1].channel_creds: want a list, is a string\n" +
				"boot: xds_servers[2].channel_creds: no known type among [\"loas\"]; known: [\"insecure\" \"tls\"]",
		},
		"google_default": {
			`{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"google_default"}]}]}`,
			"boot: xds_servers[0].channel_creds[0].type = \"google_default\": cannot be made here; " +
				"\"google_default\" needs the option bootstrap.WithChannelCreds(googledefault.Type, googledefault.New) of package github.com/xdswatch/xdswatch/transport/googledefault" +
				"; bootstrap.AllowNextChannelCreds lets the next entry stand for it",
		},
		"TLS": {
			`{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls","config":` +
				`{"certificate_file":"c","refresh_interval":"5m"}}]},{"server_uri":"y:1","channel_creds":[{"type":"tls",` +
				`"config":{"private_key_file":"k","refresh_interval":"-1s"}}]}]}`,
			"boot: xds_servers[0].channel_creds[0].config.refresh_interval = \"5m\": want a duration such as \"1.5s\", not negative\n" +
				"boot: xds_servers[0].channel_creds[0].config.private_key_file: required with certificate_file\n" +
				"boot: xds_servers[1].channel_creds[0].config.refresh_interval = \"-1s\": want a duration such as \"1.5s\", not negative\n" +
				"boot: xds_servers[1].channel_creds[0].config.certificate_file: required with private_key_file",
		},
		"authority": {
			`{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"insecure"}]}],"authorities":{"a.example":` +
				`{"client_listener_resource_name_template":"xdstp://a.example.other/%s","xds_servers":[{"server_uri":"","channel_creds":[{"type":"insecure"}]}],` +
				`"fallback_on_reachability_only":"yes"},"b/c":{"client_listener_resource_name_template":"xdstp://b/c/%s"}}}`,
			"boot: authorities[\"a.example\"].xds_servers[0].server_uri = \"\": must not be empty\n" +
				"boot: authorities[\"a.example\"].fallback_on_reachability_only = \"yes\": want a boolean, is a string\n" +
				"boot: authorities[\"a.example\"].client_listener_resource_name_template = \"xdstp://a.example.other/%s\": must begin with \"xdstp://a.example/\"\n" +
				"boot: authorities[\"b/c\"].client_listener_resource_name_template = \"xdstp://b/c/%s\": must begin with \"xdstp://b%2Fc/\"",
		},
		"number out of range": {
			`{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"insecure"}]}],"node":{"metadata":{"a":[1e999]}}}`,
			"boot: node.metadata: a number is out of the range of a double",
		},
		"long value": {
			`{"xds_servers":"` + long + `"}`,
			"boot: xds_servers: want a list, is a string",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bootstrap.Parse("boot", []byte(c.doc))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The marks of a YAML document, and empty documents, mean nothing.
func TestYAMLMarks(t *testing.T) {
	const doc = "xds_servers: [{server_uri: 'x:1', channel_creds: [{type: insecure}]}]\n"
	for _, text := range []string{doc, "--- # a\n" + doc, doc + "...\n", doc + "---\n", "%YAML 1.1\n---\n" + doc + "...\n---\n# b\n"} {
		if boot := parse(t, text); boot.Servers[0].URI != "x:1" {
			t.Errorf("%q: %+v", text, boot.Servers)
		}
	}
}

func TestErrorTypes(t *testing.T) {
	_, err := bootstrap.Parse("boot", []byte(`{"xds_servers":[{"server_uri":5}]}`))
	all, ok := err.(interface{ Unwrap() []error })
	if !ok || len(all.Unwrap()) != 2 {
		t.Fatalf("%v: want two joined errors", err)
	}
	var fe *bootstrap.FieldError
	if !errors.As(err, &fe) {
		t.Fatalf("%v is no FieldError", err)
	}
	want := bootstrap.FieldError{
		Source: "boot", Path: "xds_servers[0].server_uri", Value: "5", Reason: "want a string, is a number",
	}
	if *fe != want {
		t.Errorf("got %+v, want %+v", *fe, want)
	}

	_, err = bootstrap.Parse("boot", []byte("{\n,}"))
	var se *bootstrap.SyntaxError
	var inner *json.SyntaxError
	if !errors.As(err, &se) || se.Line != 2 || se.Column != 1 || !errors.As(err, &inner) {
		t.Errorf("%#v: want a SyntaxError of line 2, column 1 around that of encoding/json", err)
	}

	missing := filepath.Join(t.TempDir(), "none.json")
	if _, err = bootstrap.Load(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of a missing file: %v", err)
	}
	t.Setenv("GRPC_XDS_BOOTSTRAP", missing)
	if _, err = bootstrap.FromEnv(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("FromEnv with a missing file: %v", err)
	}
	t.Setenv("GRPC_XDS_BOOTSTRAP", "")
	t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", "")
	if _, err = bootstrap.FromEnv(); !errors.Is(err, bootstrap.ErrNoBootstrap) {
		t.Errorf("FromEnv without variables: %v", err)
	}
}

// Nothing that may be a secret is in an error or a notice, wherever it stands.
func TestSecretsAreNotTold(t *testing.T) {
	const s = `s3cret`
	inline := func(source string) string {
		return envoyDoc(`{google_grpc: {target_uri: x, channel_credentials: {ssl_credentials: {private_key: `+source+`}}}}`, "")
	}
	for name, doc := range map[string]string{
		"config of a credential": `{"xds_servers":[{"server_uri":"x","channel_creds":[{"type":"a","config":"s3cret"}]}]}`,
		"config as a list":       `{"xds_servers":[{"server_uri":"x","channel_creds":[{"type":"a","config":["s3cret"]}]}]}`,
		"call credential":        `{"xds_servers":[{"server_uri":"x","call_creds":[{"type":"a","config":"s3cret"}]}]}`,
		"certificate provider":   `{"certificate_providers":{"a":{"plugin_name":"p","config":"s3cret"}}}`,
		"credentials no list":    `{"xds_servers":[{"server_uri":"x","channel_creds":{"type":"a","config":{"k":"s3cret"}}}]}`,
		"inline string":          inline(`{inline_string: [s3cret]}`),
		"inline bytes":           inline(`{inline_bytes: "s3cret s3cret"}`),
		"header":                 envoyDoc(`{google_grpc: {target_uri: x}, initial_metadata: [{key: a, value: "s3crét s3cret"}, {key: b, value: "%s3cret"}]}`, ""),
		"raw header":             envoyDoc(`{google_grpc: {target_uri: x}, initial_metadata: [{key: a, raw_value: "s3cret!"}]}`, ""),
		"password":               envoyDoc(toCluster, tlsCluster(`common_tls_context: {tls_certificates: [{password: {inline_string: s3cret}}]}`)),
	} {
		_, err := bootstrap.Parse("boot", []byte(doc))
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), s) {
			t.Errorf("%s: told: %v", name, err)
		}
	}
}

// spec: BOOT-5, "Delta in a gRPC bootstrap"
func TestServerFeatures(t *testing.T) {
	boot := parse(t, `{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"insecure"}],"server_features":[
		"xds_v3","ignore_resource_deletion",7,"fail_on_data_errors",["xdswatch.delta"],
		"resource_timer_is_transient_error",null,"trusted_xds_server","xdswatch.delta","xdswatch.resume_version","xdswatch.explicit_wildcard"]}]}`)
	want := bootstrap.ManagementServer{
		URI: "x:1", ChannelCreds: bootstrap.Insecure(), Delta: true,
		Features: bootstrap.Features{
			IgnoreResourceDeletion: true, FailOnDataErrors: true,
			ResourceTimerIsTransientError: true, TrustedXDSServer: true, ResumeVersion: true, ExplicitWildcard: true,
		},
	}
	if diff := cmp.Diff(want, boot.Servers[0], sameConfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// gRPC's format may be written in YAML too.
func TestGRPCInYAML(t *testing.T) {
	boot := parse(t, "# servers\nxds_servers:\n- server_uri: x:1\n  channel_creds: [{type: insecure}]\n")
	if got := boot.Servers[0].URI; got != "x:1" {
		t.Errorf("URI %q", got)
	}
}

// spec: BOOT-6
func TestAuthorities(t *testing.T) {
	boot := parse(t, `{"xds_servers":[{"server_uri":"top:1","channel_creds":[{"type":"insecure"}]}],"authorities":{
		"":{"xds_servers":[]},
		"#.com":{"client_listener_resource_name_template":"xdstp://%23.com/x/%s"},
		"a b":{"client_listener_resource_name_template":"xdstp://a b/x/%s","fallback_on_reachability_only":true,
			"xds_servers":[{"server_uri":"own:1","channel_creds":[{"type":"insecure"}]}]}}}`)
	server := func(uri string) []bootstrap.ManagementServer {
		return []bootstrap.ManagementServer{{URI: uri, ChannelCreds: bootstrap.Insecure()}}
	}
	want := map[string]bootstrap.Authority{
		"":      {Servers: server("top:1"), ClientListenerTemplate: "xdstp:///envoy.config.listener.v3.Listener/%s"},
		"#.com": {Servers: server("top:1"), ClientListenerTemplate: "xdstp://%23.com/x/%s"},
		"a b": {
			Servers: server("own:1"), ClientListenerTemplate: "xdstp://a b/x/%s", FallbackOnReachabilityOnly: true,
		},
	}
	if diff := cmp.Diff(want, boot.Authorities, sameConfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Each kind of name has parameters of its own; an entry without any has none.
//
// spec: DYN-3 NODE-5
func TestDynamicParameters(t *testing.T) {
	boot := parse(t, `{"xds_servers":[{"server_uri":"top:1","channel_creds":[{"type":"insecure"}]}],
		"dynamic_parameters":{"env":"prod","":""},
		"node":{"dynamic_parameters":{"type.googleapis.com/T":{"params":{"shard":"1"}}}},
		"authorities":{"a":{"dynamic_parameters":{"env":"test"}},"b":{"dynamic_parameters":{}},"c":null}}`)
	want := bootstrap.DynamicParameters{
		Old:         map[string]string{"env": "prod", "": ""},
		Authorities: map[string]map[string]string{"a": {"env": "test"}},
	}
	if diff := cmp.Diff(want, boot.DynamicParameters); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := boot.Node.DynamicParameters["type.googleapis.com/T"].GetParams()["shard"]; got != "1" {
		t.Errorf("the node has the parameters %v", boot.Node.DynamicParameters)
	}
	_, err := bootstrap.Parse("test", []byte(`{"xds_servers":[{"server_uri":"top:1","channel_creds":[{"type":"insecure"}]}],
		"dynamic_parameters":["env"],"node":{"dynamic_parameters":{"T":"x"}},
		"authorities":{"a":{"dynamic_parameters":{"env":1}}}}`))
	for _, path := range []string{"dynamic_parameters: want an object", `authorities["a"].dynamic_parameters["env"] = 1: want a string`, "node.dynamic_parameters: "} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v, want one that has %q", err, path)
		}
	}
}

// The functions of a program make credentials of the config when they are asked, not
// while the bootstrap is read.
//
// spec: BOOT-3 BOOT-4
func TestCredentialOptions(t *testing.T) {
	fault := errors.New("config is refused")
	var configs []string
	boot := parse(t, `{"xds_servers":[{"server_uri":"x:1",
		"channel_creds":[{"type":"loas"},{"type":"mine","config":{"b":1.0,"a":"<x>"}},{"type":"tls"}],
		"call_creds":[{"type":"token"},{"type":"other"}]}]}`,
		bootstrap.WithChannelCreds("mine", func(config json.RawMessage) (credentials.Bundle, error) {
			configs = append(configs, "channel "+string(config))
			return nil, fault
		}),
		bootstrap.WithCallCreds("token", func(config json.RawMessage) (credentials.PerRPCCredentials, error) {
			configs = append(configs, "call "+string(config))
			return nil, fault
		}))
	if configs != nil {
		t.Errorf("built while the bootstrap was read: %q", configs)
	}
	s := boot.Servers[0]
	if s.ChannelCreds.Type != "mine" || len(s.CallCreds) != 1 || s.CallCreds[0].Type != "token" {
		t.Fatalf("got %q and %d call credentials", s.ChannelCreds.Type, len(s.CallCreds))
	}
	if _, err := s.ChannelCreds.Build(); err != fault {
		t.Errorf("Build of the channel's: %v", err)
	}
	if _, err := s.CallCreds[0].Build(); err != fault {
		t.Errorf("Build of the call's: %v", err)
	}
	want := []string{`channel {"a":"\u003cx\u003e","b":1.0}`, `call `}
	if diff := cmp.Diff(want, configs); diff != "" {
		t.Errorf("configs, -want +got:\n%s", diff)
	}
}

func TestBadOptions(t *testing.T) {
	channel := func(json.RawMessage) (credentials.Bundle, error) { return nil, nil }
	call := func(json.RawMessage) (credentials.PerRPCCredentials, error) { return nil, nil }
	_, err := bootstrap.Parse("boot", []byte(`{}`),
		bootstrap.WithChannelCreds("tls", channel),
		bootstrap.WithChannelCreds("mine", nil),
		bootstrap.WithCallCreds("jwt_token_file", call),
		bootstrap.WithCallCreds("", call))
	want := `bootstrap.WithChannelCreds: type "tls" is built in
bootstrap.WithChannelCreds: type "mine": want a type and a function
bootstrap.WithCallCreds: type "jwt_token_file" is built in
bootstrap.WithCallCreds: type "": want a type and a function`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
