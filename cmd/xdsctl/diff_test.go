package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
)

// changed is the shop after some changes.
func changed() []proto.Message {
	slow := edsCluster("backend")
	slow.ConnectTimeout = durationpb.New(2 * time.Second)
	return []proto.Message{
		proxyListener("ingress", "shop"), routesTo("shop", "backend", "frontend"),
		slow, edsCluster("extra"), edsCluster("frontend"),
		assignment("frontend", "10.0.0.9"), assignment("backend", "10.0.1.1", "10.0.1.2"), assignment("extra"),
	}
}

const changedText = `~ cds backend
    connectTimeout: (none) -> "2s"
+ cds extra
+ eds extra
~ eds frontend
    endpoints[0].lbEndpoints[0].endpoint.address.socketAddress.address: "10.0.0.1" -> "10.0.0.9"
~ rds shop
    virtualHosts: ["frontend","backend"] -> ["backend","frontend"]
`

// States of servers, bootstraps, files and directories are compared alike.
func TestDiff(t *testing.T) {
	t.Parallel()
	a, b := managed(t, shop()...), managed(t, changed()...)
	dir := t.TempDir()
	status, out, errs := runOnce(t, "get", "--server", b.Addr(), "-o", "yaml", "lds", "cds", "rds:shop")
	if status != 0 {
		t.Fatal(errs)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rest.yaml", out)
	if status, out, errs = runOnce(t, "get", "--server", b.Addr(), "-o", "json", "eds:backend", "eds:frontend", "eds:extra"); status != 0 {
		t.Fatal(errs)
	}
	write("eds.json", out)
	write("README.md", "no resources")
	boot := grpcBootstrap(t, b.Addr(), "")
	for _, second := range []string{"server:" + b.Addr(), "bootstrap:" + boot, dir} {
		t.Run(second, func(t *testing.T) {
			t.Parallel()
			status, out, errs := runOnce(t, "diff", "server:"+a.Addr(), second)
			if status != 3 || errs != "" || out != changedText {
				t.Errorf("status %d, %s\n%s", status, errs, out)
			}
			if status, out, errs := runOnce(t, "diff", "server:"+b.Addr(), second); status != 0 || out != "" || errs != "" {
				t.Errorf("status %d, %s\n%s", status, errs, out)
			}
		})
	}
}

// Secrets are compared and not printed.
//
// spec: H-3
func TestDiffJSON(t *testing.T) {
	t.Parallel()
	a := resourceFile(t, "a.yaml", cluster("same"), cluster("gone"), &clusterv3.Cluster{Name: "b", AltStatName: "x"}, secretOf("MARK3R"))
	b := resourceFile(t, "b.pb", cluster("same"), cluster("new"), &clusterv3.Cluster{Name: "b", AltStatName: "y"}, secretOf("M4RKER"))
	status, out, errs := runOnce(t, "diff", "-o", "json", a, b)
	var ds []report.Difference
	if err := json.Unmarshal([]byte(out), &ds); err != nil || status != 3 || errs != "" {
		t.Fatalf("status %d, %v, %s", status, err, errs)
	}
	var lines []string
	for _, d := range ds {
		line := d.Name + " " + d.Change
		for _, f := range d.Fields {
			line += " " + f.Path + " " + string(f.A) + " " + string(f.B)
		}
		lines = append(lines, line)
	}
	want := []string{
		`b changed altStatName "x" "y"`, "gone removed", "new added",
		`s changed tlsCertificate.certificateChain.inlineString "[redacted]" "[redacted]" tlsCertificate.privateKey.inlineBytes "[redacted]" "[redacted]"`,
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") || strings.Contains(out, "MARK3R") {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	if _, out, _ := runOnce(t, "diff", "--show-secrets", a, b); !strings.Contains(out, `"MARK3R" -> "M4RKER"`) {
		t.Errorf("%s", out)
	}
}

// What is refused of a server, and what one does not tell that says nothing at all, is no part of a state that can be
// compared: not with another of which it is not known either, nor with one that lacks it. What a server that speaks does
// not tell it does not have, which is said.
func TestDiffUnknown(t *testing.T) {
	t.Parallel()
	silent := func(map[string][]proto.Message) string {
		return server(t, testutil.OnRequest(func(*testutil.Stream, *testutil.Request) {})).Target()
	}
	having := func(types map[string][]proto.Message) string {
		return server(t, testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
			if has, ok := types[r.TypeURL()]; ok && r.Nonce() == "" {
				_ = st.Send(testutil.SotW(r.TypeURL(), "1", "n", has...))
			}
		})).Target()
	}
	type types = map[string][]proto.Message
	listeners, clusters, endpoints := lds.Type.TypeURL(), cds.Type.TypeURL(), eds.Type.TypeURL()
	refused, nameless := &clusterv3.Cluster{Name: "bad", ConnectTimeout: durationpb.New(-1)}, cluster("")
	none := resourceFile(t, "none.yaml", cluster("a"))
	for name, tt := range map[string]struct {
		server func(types) string
		types  types
		status int
		stderr string
	}{
		"silent":          {silent, nil, 1, `lds "*": the server did not answer in time`},
		"no listeners":    {having, types{clusters: {cluster("a")}}, 0, `lds "*": the server did not answer in time; it is compared`},
		"empty":           {having, types{clusters: {cluster("a")}, listeners: {}}, 0, ""},
		"refused":         {having, types{clusters: {cluster("a"), refused}, listeners: {}}, 1, `cds "bad": xds: `},
		"nameless":        {having, types{clusters: {cluster("a"), nameless}, listeners: {}}, 1, `rejected: `},
		"no endpoints":    {having, types{clusters: {edsCluster("a")}, listeners: {}}, 3, `eds "a": the server did not answer in time; it is compared`},
		"other endpoints": {having, types{clusters: {edsCluster("a")}, listeners: {}, endpoints: {assignment("b")}}, 3, ""},
	} {
		for beside, b := range map[string]string{"a file": none, "the same": "server:" + tt.server(tt.types)} {
			t.Run(name+", "+beside, func(t *testing.T) {
				if waits := tt.status == 3 || strings.Contains(tt.stderr, "in time"); waits && b != none && testing.Short() {
					t.Skip("long: waits for one server and then for the other")
				}
				t.Parallel()
				a := tt.server(tt.types)
				status, out, errs := runOnce(t, "diff", "--resource-timeout", silence, "--log-level", "error", "server:"+a, b)
				want := tt.status
				if want == 3 && b != none {
					want = 0
				}
				if status != want || want != 3 && out != "" || !strings.Contains(errs, tt.stderr) || (errs == "") != (tt.stderr == "") || tt.stderr != "" && !strings.Contains(errs, a) {
					t.Errorf("status %d, %s%s", status, errs, out)
				}
			})
		}
	}
}

// Of several servers each has to say something: that one speaks tells nothing of what another has.
func TestDiffSilentBesideAnother(t *testing.T) {
	t.Parallel()
	far := edsCluster("a")
	far.EdsClusterConfig.ServiceName = "xdstp://b/envoy.config.endpoint.v3.ClusterLoadAssignment/x"
	silent := server(t, testutil.OnRequest(func(*testutil.Stream, *testutil.Request) {})).Target()
	speaks := server(t, testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		if has := map[string][]proto.Message{cds.Type.TypeURL(): {far}}; r.Nonce() == "" {
			_ = st.Send(testutil.SotW(r.TypeURL(), "1", "n", has[r.TypeURL()]...))
		}
	})).Target()
	list := func(target string) string {
		return fmt.Sprintf(`"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}]}]`, target)
	}
	boot := file(t, "b.json", fmt.Sprintf(`{"node": {"id": "me"}, %s, "authorities": {"b": {%s}}}`, list(speaks), list(silent)))
	status, out, errs := runOnce(t, "diff", "--resource-timeout", silence, "--log-level", "error", "bootstrap:"+boot, resourceFile(t, "a.yaml", far))
	if status != 1 || out != "" || !strings.Contains(errs, silent+`: eds "xdstp://b/`) {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}

// Of a part that is new all is shown but what is secret in it.
func TestDiffBesideSecrets(t *testing.T) {
	t.Parallel()
	text := `{"@type": "` + cds.Type.TypeURL() + `", "name": "a"TLS}`
	tls := `, "transportSocket": {"name": "tls", "typedConfig": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
		"sni": "shop", "commonTlsContext": {"tlsCertificates": [{"privateKey": {"inlineBytes": "TUFSSzNS"}}]}}}`
	with, without := file(t, "a.json", strings.Replace(text, "TLS", tls, 1)), file(t, "a.json", strings.Replace(text, "TLS", "", 1))
	status, out, errs := runOnce(t, "diff", without, with)
	if status != 3 || !strings.Contains(out, `"sni":"shop"`) || !strings.Contains(out, `"inlineBytes":"[redacted]"`) || strings.Contains(out, "TUFSSzNS") {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}

// What stands for a secret, as in a recording, is neither equal to one nor different, and the command says so. Two secrets are
// compared.
func TestDiffRedacted(t *testing.T) {
	t.Parallel()
	secret := func(text string) string {
		return file(t, "a.json", `{"@type": "`+sds.Type.TypeURL()+`", "name": "a", "tlsCertificate": {"privateKey": {"inlineString": "`+text+`"}}}`)
	}
	const note = "secrets that are not compared, since one side has [redacted] in their place: 1"
	for _, c := range []struct {
		a, b   string
		status int
		note   bool
	}{{"MARK3R", "[redacted]", 0, true}, {"[redacted]", "MARK3R", 0, true}, {"[redacted]", "[redacted]", 0, false}, {"MARK3R", "other", 3, false}} {
		status, out, errs := runOnce(t, "diff", secret(c.a), secret(c.b))
		if status != c.status || strings.Contains(errs, note) != c.note || strings.Contains(out+errs, "MARK3R") || (out != "") != (status == 3) {
			t.Errorf("%q and %q: status %d, %s%s", c.a, c.b, status, out, errs)
		}
	}
}

// configDump is Envoy's, with a listener in two states and an extension that is not known here.
const configDump = `{"configs": [
	{"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"node": {"id": "x"}}},
	{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "version_info": "7", "new_field": 1, "dynamic_active_clusters": [
		{"version_info": "7", "cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a",
			"typed_extension_protocol_options": {"x": {"@type": "type.googleapis.com/no.such.Extension", "a": {"b": 1}}}}}]},
	{"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [{"name": "l",
		"active_state": {"version_info": "1", "listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "l", "stat_prefix": "active"}},
		"warming_state": {"version_info": "2", "listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "l", "stat_prefix": "warming"}},
		"error_state": {"failed_configuration": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "refused"}}}]}
]}`

func TestDiffConfigDump(t *testing.T) {
	t.Parallel()
	dump := file(t, "dump.json", configDump)
	other := file(t, "b.yaml", `
# a comment
---
"@type": type.googleapis.com/envoy.config.listener.v3.Listener
name: l
statPrefix: warming
---
resources: []
`)
	const want = "- cds a\n~ lds l\n    statPrefix: \"active\" -> \"warming\"\n"
	if status, out, errs := runOnce(t, "diff", dump, other); status != 3 || out != want {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
}

// Of an extension that is not known here the JSON is compared, whatever the order of its fields: in files,
// dumps and what a process has.
func TestDiffUnknownExtension(t *testing.T) {
	t.Parallel()
	const resource = `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a",
		"typed_extension_protocol_options": {"x": {"@type": "type.googleapis.com/no.such.Extension", EXTENSION}}}`
	const dump = `{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "new_field": 1,
		"dynamic_active_clusters": [{"new_field": 1, "cluster": ` + resource + `}]}]}`
	const status = `{"config": [{"genericXdsConfigs": [{"typeUrl": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a", "xdsConfig": ` + resource + `}]}]}`
	const unknown = `{"@type": "type.googleapis.com/no.such.Extension", "name": "a", EXTENSION}`
	envoy := func(text string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	for name, of := range map[string]func(extension string) string{
		"file":         func(e string) string { return file(t, "a.yaml", strings.Replace(resource, "EXTENSION", e, 1)) },
		"dump":         func(e string) string { return file(t, "a.json", strings.Replace(dump, "EXTENSION", e, 1)) },
		"process":      func(e string) string { return envoy(strings.Replace(dump, "EXTENSION", e, 1)) },
		"status":       func(e string) string { return envoy(strings.Replace(status, "EXTENSION", e, 1)) },
		"unknown type": func(e string) string { return file(t, "a.json", strings.Replace(unknown, "EXTENSION", e, 1)) },
	} {
		a := of(`"value": {"b": 1}, "c": 12345678901234567890`)
		if status, out, errs := runOnce(t, "diff", a, of(`"c": 12345678901234567890, "value": {"b": 1}`)); status != 0 || out+errs != "" {
			t.Errorf("%s, the same: status %d, %s%s", name, status, out, errs)
		}
		secret := of(`"value": {"b": 1}, "c": "MARK3R"`)
		if status, out, errs := runOnce(t, "diff", a, secret); status != 3 || !strings.HasSuffix(out, "c: \"[redacted]\" -> \"[redacted]\"\n") || errs != "" {
			t.Errorf("%s, a text: status %d, %s%s", name, status, out, errs)
		}
		if status, out, errs := runOnce(t, "diff", "--show-secrets", a, secret); status != 3 || !strings.HasSuffix(out, "c: 12345678901234567890 -> \"MARK3R\"\n") || errs != "" {
			t.Errorf("%s, a text, shown: status %d, %s%s", name, status, out, errs)
		}
		for _, other := range []string{`"value": {"b": 2}, "c": 12345678901234567890`, `"value": {"b": 1}, "c": 12345678901234567891`, `"value": {"b": 1}`, `"value": ""`} {
			if status, out, errs := runOnce(t, "diff", "-o", "json", a, of(other)); status != 3 || !strings.Contains(out, `"changed"`) || errs != "" {
				t.Errorf("%s, %s: status %d, %s%s", name, other, status, out, errs)
			}
		}
		if strings.HasPrefix(a, "http") {
			continue
		}
		// It cannot be served.
		if status, _, errs := runOnce(t, "replay", a); status != 1 || !strings.Contains(errs, `the type "type.googleapis.com/no.such.Extension" is not known here`) {
			t.Errorf("%s: status %d, %s", name, status, errs)
		}
	}
}

// csds is a process that says what it has.
type csds struct {
	statusv3.UnimplementedClientStatusDiscoveryServiceServer
}

func (csds) FetchClientStatus(context.Context, *statusv3.ClientStatusRequest) (*statusv3.ClientStatusResponse, error) {
	return &statusv3.ClientStatusResponse{Config: []*statusv3.ClientConfig{{GenericXdsConfigs: []*statusv3.ClientConfig_GenericXdsConfig{
		{TypeUrl: cds.Type.TypeURL(), Name: "a", VersionInfo: "1", XdsConfig: packed(cluster("a"))},
		{TypeUrl: cds.Type.TypeURL(), Name: "requested"},
	}}}}, nil
}

func TestDiffCSDS(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	statusv3.RegisterClientStatusDiscoveryServiceServer(srv, csds{})
	go srv.Serve(lis)
	t.Cleanup(srv.Stop)
	b := resourceFile(t, "b.yaml", cluster("b"))
	if status, out, errs := runOnce(t, "diff", "csds:"+lis.Addr().String(), b); status != 3 || out != "- cds a\n+ cds b\n" {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
}

func TestDiffErrors(t *testing.T) {
	t.Parallel()
	good := resourceFile(t, "good.yaml", cluster("a"))
	nobody := viewtest.Nobody(t).String()
	srv := server(t, testutil.OnRequest(func(*testutil.Stream, *testutil.Request) {}))
	for _, tt := range []struct {
		args   string
		status int
		stderr string
	}{
		{good, 2, "want two states"},
		{good + " /does/not/exist", 1, "/does/not/exist: no such file"},
		{good + " " + file(t, "x.yaml", "a: b"), 1, "x.yaml: neither a resource"},
		{good + " " + file(t, "x.json", `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "naem": "x"}`), 1, `unknown field "naem"`},
		{good + " " + file(t, "s.json", `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "connectTimeout": "MARK3R"}`), 1, "s.json: "},
		{good + " " + file(t, "x.txt", "resources {}"), 1, "; it is read as JSON or YAML, since its name does not end in .pb (binary)"},
		{good + " " + file(t, "x.pb", "\xff"), 1, "x.pb: not a DiscoveryResponse"},
		{good + " " + file(t, "two.yaml", "resources: []\n---\nx: 1\n"), 1, "document 2: neither"},
		{good + " server:" + nobody, 1, "the server cannot be reached"},
		{good + " csds:" + nobody, 1, "csds:" + nobody},
		{good + " server:", 2, "a state is empty"},
		{good + " bootstrap:/does/not/exist", 2, "no such file"},
		{good + " " + good + " --server x", 2, "--server and --bootstrap are not for diff"},
		{good + " " + good + " --tls", 2, "--tls belongs to server:HOST:PORT"},
		{good + " " + good + " --for -1s", 2, "--for -1s is negative"},
		{good + " server:" + srv.Target() + " --for 200ms", 1, "no answer when the time was up"},
	} {
		status, out, errs := runOnce(t, append([]string{"diff"}, words(tt.args)...)...)
		if status != tt.status || out != "" || !strings.Contains(errs, tt.stderr) || strings.Contains(errs, "MARK3R") {
			t.Errorf("%s: status %d, %s\n%s", tt.args, status, errs, out)
		}
	}
}
