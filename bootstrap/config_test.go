package bootstrap_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/xdswatch/xdswatch/bootstrap"
)

func TestServer(t *testing.T) {
	boot, err := bootstrap.Server("xds.example:443")
	if err != nil {
		t.Fatal(err)
	}
	want := &bootstrap.Config{
		Node:                          &corev3.Node{},
		Servers:                       []bootstrap.ManagementServer{{URI: "xds.example:443", ChannelCreds: bootstrap.Insecure()}},
		ClientDefaultListenerTemplate: "%s",
	}
	if diff := cmp.Diff(want, boot, sameConfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := bootstrap.Server(""); err == nil {
		t.Error("an empty target is accepted")
	}
}

func TestValidate(t *testing.T) {
	good := bootstrap.ManagementServer{URI: "x:1", ChannelCreds: bootstrap.Insecure()}
	with := func(change func(*bootstrap.ManagementServer)) *bootstrap.Config {
		s := good
		change(&s)
		return &bootstrap.Config{Servers: []bootstrap.ManagementServer{s}}
	}
	const at = "bootstrap.Config: Servers[0]"
	for name, c := range map[string]struct {
		config *bootstrap.Config
		want   string
	}{
		"plain":                     {with(func(*bootstrap.ManagementServer) {}), ""},
		"TLS by the system's roots": {with(func(s *bootstrap.ManagementServer) { s.ChannelCreds = bootstrap.ChannelCreds{Type: "tls"} }), ""},
		"parameters that are no text": {
			&bootstrap.Config{Servers: []bootstrap.ManagementServer{good}, DynamicParameters: bootstrap.DynamicParameters{
				Old:         map[string]string{"\xff": "v", "k": "v"},
				Authorities: map[string]map[string]string{"a": {"k": "\xff"}},
			}},
			"bootstrap.Config: DynamicParameters.Old[\"\\xff\"] = \"v\": must be UTF-8\n" +
				"bootstrap.Config: DynamicParameters.Authorities[\"a\"][\"k\"] = \"\\ufffd\": must be UTF-8",
		},
		"zero": {&bootstrap.Config{}, "bootstrap.Config: Servers: at least one server is required"},
		"zero server": {
			&bootstrap.Config{Servers: make([]bootstrap.ManagementServer, 1)},
			at + ".URI: required\n" + at + ".ChannelCreds: required; bootstrap.Insecure() asks for plaintext",
		},
		"credentials that nothing makes": {
			with(func(s *bootstrap.ManagementServer) {
				s.ChannelCreds.Type = "mine"
				s.CallCreds = []bootstrap.CallCreds{{}, {Type: "jwt_token_file"}, {Type: "other"}}
			}),
			at + ".ChannelCreds.Build: required with type \"mine\"\n" +
				at + ".CallCreds[0].Type: required\n" +
				at + ".CallCreds[1].TokenFile: required\n" +
				at + ".CallCreds[2].Build: required with type \"other\"",
		},
		"TLS": {
			with(func(s *bootstrap.ManagementServer) {
				s.ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{
					CACertificateFile: "a", CACertificate: []byte("PEM"),
					CertificateFile: "c", Certificate: []byte("PEM"),
					RefreshInterval: -time.Second,
				}}
			}),
			at + ".ChannelCreds.TLS.Certificate: is given beside CertificateFile\n" +
				at + ".ChannelCreds.TLS.CACertificate: is given beside CACertificateFile\n" +
				at + ".ChannelCreds.TLS: want both a certificate and a private key, or neither\n" +
				at + ".ChannelCreds.TLS.RefreshInterval = \"-1s\": must not be negative",
		},
		"headers and retries": {
			with(func(s *bootstrap.ManagementServer) {
				s.Headers = []bootstrap.Header{
					{Key: "X-Good", Value: "yes"}, {Key: "x-bin", Value: "\x00"},
					{Key: ":path", Value: "/"}, {Key: "grpc-timeout"}, {Key: "k", Value: "s3cret\n"},
				}
				s.RetryBase, s.RetryMax = time.Minute, time.Second
			}),
			at + ".Headers[2]: want a key of letters, digits and _-.\n" +
				at + ".Headers[3] = \"grpc-timeout\": the key is gRPC's own\n" +
				at + ".Headers[4] = \"k\": the value is not printable ASCII\n" +
				at + ".RetryMax = \"1s\": must not be less than RetryBase",
		},
		"maps": {
			&bootstrap.Config{
				Servers: []bootstrap.ManagementServer{good},
				Authorities: map[string]bootstrap.Authority{
					"a": {ClientListenerTemplate: "xdstp://b/%s"},
					"b": {Servers: []bootstrap.ManagementServer{{URI: "y:1"}}},
				},
				CertificateProviders: map[string]bootstrap.CertificateProvider{"p": {}},
				AllowedGRPCServices:  map[string]bootstrap.GRPCService{"z:1": {}},
			},
			"bootstrap.Config: Authorities[\"a\"].ClientListenerTemplate = \"xdstp://b/%s\": must begin with \"xdstp://a/\"\n" +
				"bootstrap.Config: Authorities[\"b\"].Servers[0].ChannelCreds: required; bootstrap.Insecure() asks for plaintext\n" +
				"bootstrap.Config: CertificateProviders[\"p\"].PluginName: required\n" +
				"bootstrap.Config: AllowedGRPCServices[\"z:1\"].ChannelCreds: required; bootstrap.Insecure() asks for plaintext",
		},
		"sources": {
			&bootstrap.Config{
				Sources: []bootstrap.Source{
					{Authorities: []string{"a", "b"}, Servers: []bootstrap.ManagementServer{good, good}},
					{Authorities: []string{"b", "", "b"}, Servers: []bootstrap.ManagementServer{{URI: "y:1"}}},
					{Servers: []bootstrap.ManagementServer{good}},
				},
				DefaultSource: &bootstrap.Source{Authorities: []string{"a"}},
			},
			"bootstrap.Config: Sources[1].Authorities[1]: required\n" +
				"bootstrap.Config: Sources[1].Authorities[2] = \"b\": is named twice\n" +
				"bootstrap.Config: Sources[1].Servers[0].ChannelCreds: required; bootstrap.Insecure() asks for plaintext\n" +
				"bootstrap.Config: Sources[2].Authorities: at least one authority is required\n" +
				"bootstrap.Config: DefaultSource.Servers: at least one server is required",
		},
		"only a default source": {
			&bootstrap.Config{
				DefaultSource:     &bootstrap.Source{Servers: []bootstrap.ManagementServer{good}},
				Startup:           []bootstrap.Subscription{{TypeURL: listenersType, Collection: "xdstp:///envoy.config.listener.v3.Listener/*"}},
				NodeContextParams: []string{"id"},
			}, "",
		},
		"without top-level servers": {
			&bootstrap.Config{
				DefaultSource: &bootstrap.Source{Servers: []bootstrap.ManagementServer{good}},
				Authorities:   map[string]bootstrap.Authority{"own": {Servers: []bootstrap.ManagementServer{good}}, "none": {}},
				Startup:       []bootstrap.Subscription{{TypeURL: clustersType, Collection: "*"}},
			},
			"bootstrap.Config: Authorities[\"none\"].Servers: required, as there are no top-level servers\n" +
				"bootstrap.Config: Servers: required with Startup[0]",
		},
		"collections": {
			&bootstrap.Config{
				Servers: []bootstrap.ManagementServer{good},
				Startup: []bootstrap.Subscription{
					{TypeURL: listenersType, Collection: "**"}, {},
					{TypeURL: clustersType, Collection: "xdstp://a/envoy.config.cluster.v3.ClusterCollection/x"},
				},
				NodeContextParams: []string{"metadata", "metadata.x"},
			},
			"bootstrap.Config: Startup[0].Collection = \"**\": scheme at byte 0: is none of xdstp, http and file\n" +
				"bootstrap.Config: Startup[1].TypeURL: required\n" +
				"bootstrap.Config: Startup[1].Collection: required; \"*\" is everything of the type\n" +
				"bootstrap.Config: NodeContextParams[1] = \"metadata.x\": want one of id, cluster, user_agent_name, user_agent_version, " +
				"locality.region, locality.zone, locality.sub_zone, metadata, user_agent_build_version.version, user_agent_build_version.metadata",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := c.config.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What is done to the copy does not show in the original.
func TestWithDefaultsCopies(t *testing.T) {
	original := &bootstrap.Config{
		Servers: []bootstrap.ManagementServer{{
			URI: "x:1", ChannelCreds: bootstrap.Insecure(), Headers: []bootstrap.Header{{Key: "k", Value: "v"}},
		}},
		Authorities: map[string]bootstrap.Authority{"a": {}},
		Sources:     []bootstrap.Source{{Authorities: []string{"b"}, Servers: []bootstrap.ManagementServer{{URI: "y:1"}}}},
		DefaultSource: &bootstrap.Source{
			Servers: []bootstrap.ManagementServer{{URI: "z:1"}},
		},
		NodeContextParams: []string{"id"},
		DynamicParameters: bootstrap.DynamicParameters{
			Old: map[string]string{"k": "v"}, Authorities: map[string]map[string]string{"a": {"k": "v"}},
		},
	}
	cloned := original.WithDefaults()
	cloned.Sources[0].Authorities[0] = "changed"
	cloned.Sources[0].Servers[0].URI = "changed"
	cloned.DefaultSource.Servers[0].URI = "changed"
	cloned.NodeContextParams[0] = "changed"
	cloned.DynamicParameters.Old["k"] = "changed"
	cloned.DynamicParameters.Authorities["a"]["k"] = "changed"
	cloned.Servers[0].Headers[0].Value = "changed"
	cloned.Authorities["a"].Servers[0].URI = "changed"
	delete(cloned.Authorities, "a")
	cloned.Node.Id = "changed"
	if s := original.Servers[0]; s.URI != "x:1" || s.Headers[0].Value != "v" {
		t.Errorf("the original's server is %+v", s)
	}
	if s := original.Sources[0]; s.Authorities[0] != "b" || s.Servers[0].URI != "y:1" {
		t.Errorf("the original's source is %+v", s)
	}
	if original.DefaultSource.Servers[0].URI != "z:1" || original.NodeContextParams[0] != "id" {
		t.Errorf("the original has the default source %+v and node parameters %q", original.DefaultSource, original.NodeContextParams)
	}
	if p := original.DynamicParameters; p.Old["k"] != "v" || p.Authorities["a"]["k"] != "v" {
		t.Errorf("the original has the parameters %v", p)
	}
	if _, ok := original.Authorities["a"]; !ok || original.Node != nil {
		t.Errorf("the original has authorities %v and node %v", original.Authorities, original.Node)
	}
}

// spec: BOOT-2 STREAM-2
func TestKey(t *testing.T) {
	const base = `{"server_uri":"x:1","channel_creds":[{"type":"tls","config":{"ca_certificate_file":"a"}}],` +
		`"call_creds":[{"type":"jwt_token_file","config":{"jwt_token_file":"/t"}}],"server_features":["trusted_xds_server"]}`
	key := func(doc string) string {
		return parse(t, `{"xds_servers":[`+doc+`]}`).Servers[0].Key()
	}
	for name, doc := range map[string]string{
		"same, told otherwise": `{"note":1,"server_features":["xds_v3","trusted_xds_server",4],"server_uri":"x:1",` +
			`"channel_creds":[{"type":"loas"},{"type":"tls","more":1,"config":{"ca_certificate_file":"a"}},{"type":"insecure"}],` +
			`"call_creds":[{"type":"other"},{"config":{"jwt_token_file":"/t"},"type":"jwt_token_file"}]}`,
	} {
		if key(doc) != key(base) {
			t.Errorf("%s: differs", name)
		}
	}
	seen := map[string]string{key(base): "base"}
	for name, change := range map[string]func(*bootstrap.ManagementServer){
		"URI":           func(s *bootstrap.ManagementServer) { s.URI = "y:1" },
		"channel creds": func(s *bootstrap.ManagementServer) { s.ChannelCreds = bootstrap.Insecure() },
		"other creds":   func(s *bootstrap.ManagementServer) { s.ChannelCreds = bootstrap.ChannelCreds{Type: "mine"} },
		"their config": func(s *bootstrap.ManagementServer) {
			s.ChannelCreds = bootstrap.ChannelCreds{Type: "mine", Config: json.RawMessage(`{}`)}
		},
		"roots":         func(s *bootstrap.ManagementServer) { s.ChannelCreds.TLS = nil },
		"no call creds": func(s *bootstrap.ManagementServer) { s.CallCreds = nil },
		"token": func(s *bootstrap.ManagementServer) {
			s.CallCreds = []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: "/u"}}
		},
		"feature":        func(s *bootstrap.ManagementServer) { s.Features.IgnoreResourceDeletion = true },
		"variant":        func(s *bootstrap.ManagementServer) { s.Delta = true },
		"stream by type": func(s *bootstrap.ManagementServer) { s.PerType = true },
		"version 2":      func(s *bootstrap.ManagementServer) { s.TransportV2 = true },
		"header":         func(s *bootstrap.ManagementServer) { s.Headers = []bootstrap.Header{{Key: "a", Value: "b"}} },
		"two headers":    func(s *bootstrap.ManagementServer) { s.Headers = []bootstrap.Header{{Key: "a"}, {Key: "b"}} },
		"authority":      func(s *bootstrap.ManagementServer) { s.HostAuthority = "a" },
		"retries":        func(s *bootstrap.ManagementServer) { s.RetryBase = 1 },
		"most":           func(s *bootstrap.ManagementServer) { s.RetryMax = 1 },
	} {
		s := parse(t, `{"xds_servers":[`+base+`]}`).Servers[0]
		change(&s)
		if other, ok := seen[s.Key()]; ok {
			t.Errorf("%s: same key as %s", name, other)
		}
		seen[s.Key()] = name
	}
	zero := bootstrap.ManagementServer{ChannelCreds: bootstrap.ChannelCreds{Type: "tls"}}
	empty := bootstrap.ManagementServer{ChannelCreds: bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{}}}
	if zero.Key() != empty.Key() {
		t.Error("no TLS and the zero TLS differ, and mean the same")
	}
}

// spec: BOOT-6 BOOT-7
func TestListenerNames(t *testing.T) {
	c := &bootstrap.Config{
		Authorities: map[string]bootstrap.Authority{
			"a": {},
			"b": {ClientListenerTemplate: "xdstp://b/x/%s?n=%s"},
		},
	}
	for _, tt := range []struct{ template, authority, target, want string }{
		{"", "", "svc/a b", "svc/a b"},
		{"old-%s-%s", "", "a b", "old-a b-a b"},
		{"xdstp://t/x/%s", "", "svc/a b?%s", "xdstp://t/x/svc/a%20b%3F%25s"},
		{"", "a", "svc", "xdstp://a/envoy.config.listener.v3.Listener/svc"},
		{"", "b", "ü/1", "xdstp://b/x/%C3%BC/1?n=%C3%BC/1"},
	} {
		c.ClientDefaultListenerTemplate = tt.template
		got, err := c.ClientListenerName(tt.authority, tt.target)
		if err != nil || got != tt.want {
			t.Errorf("%q, %q, %q: got %q, %v; want %q", tt.template, tt.authority, tt.target, got, err, tt.want)
		}
	}
	if _, err := c.ClientListenerName("nobody", "x"); !errors.Is(err, bootstrap.ErrUnknownAuthority) {
		t.Errorf("unknown authority: %v", err)
	}
	if _, err := c.ServerListenerName("0.0.0.0:443"); !errors.Is(err, bootstrap.ErrNoTemplate) {
		t.Errorf("no server template: %v", err)
	}
	for template, want := range map[string]string{
		"grpc/server?a=%s":     "grpc/server?a=[::]:443",
		"xdstp://a/x/s?l=%s":   "xdstp://a/x/s?l=%5B::%5D:443",
		"no place for address": "no place for address",
	} {
		c.ServerListenerTemplate = template
		if got, err := c.ServerListenerName("[::]:443"); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", template, got, err, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"600s": 10 * time.Minute, "1.5s": 1500 * time.Millisecond, ".01s": 10 * time.Millisecond,
		"0s": 0, "3.s": 3 * time.Second, "0.000000001s": 1,
		"315576000000s": math.MaxInt64, "99999999999999999999s": math.MaxInt64,
	} {
		doc := `{"xds_servers":[{"server_uri":"x","channel_creds":[{"type":"tls","config":{"refresh_interval":"` + text + `"}}]}]}`
		if got := parse(t, doc).Servers[0].ChannelCreds.TLS.RefreshInterval; got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{`"600"`, `"s"`, `".s"`, `"-1s"`, `"1m"`, `"1.0000000001s"`, `""`, `" 1s"`, `600`} {
		doc := `{"xds_servers":[{"server_uri":"x","channel_creds":[{"type":"tls","config":{"refresh_interval":` + text + `}}]}]}`
		if _, err := bootstrap.Parse("boot", []byte(doc)); err == nil {
			t.Errorf("%s: accepted", text)
		}
	}
}
