package main

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
)

// managed is a real management server with a few resources.
func managed(t *testing.T, resources ...proto.Message) *testutil.ManagementServer {
	t.Helper()
	m := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	if err := m.Set("1", resources...); err != nil {
		t.Fatal(err)
	}
	return m
}

func secretOf(value string) *tlsv3.Secret {
	return &tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: value}},
		PrivateKey:       &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte(value)}},
	}}}
}

// An entry without a name that is refused is one of a collection, and says nothing of a name.
func TestGetNameless(t *testing.T) {
	t.Parallel()
	target := server(t, testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		if r.Nonce() == "" {
			_ = st.Send(testutil.SotW(r.TypeURL(), "1", "n", cluster("a"), cluster("")))
		}
	})).Target()
	for name, want := range map[string]struct {
		status int
		stderr string
	}{"cds": {3, "xdsctl: cds: "}, "cds:a": {0, ""}} {
		status, out, errs := runOnce(t, "get", "--server", target, "--log-level", "error", "-o", "name", name)
		if status != want.status || out != "cds:a\n" || !strings.HasPrefix(errs, want.stderr) || (errs == "") != (want.stderr == "") {
			t.Errorf("%s: status %d, output %s, standard error %s", name, status, out, errs)
		}
	}
}

// Resources are listed once, whatever subscriptions they answer, and secrets are redacted.
//
// spec: H-3
func TestGet(t *testing.T) {
	t.Parallel()
	m := managed(t, cluster("a"), cluster("longer-name"), &endpointv3.ClusterLoadAssignment{ClusterName: "a"}, secretOf("MARK3R"))
	for _, variant := range []string{"sotw", "delta"} {
		get := func(args ...string) (int, string, string) {
			status, out, errs := runOnce(t, append([]string{"get", "--server", m.Addr(), "--variant", variant}, args...)...)
			return status, strings.ReplaceAll(out, m.Addr(), "SERVER"), errs
		}
		status, out, errs := get("cds", "eds:a", "cds:a")
		fields := [][]string{}
		for line := range strings.Lines(out) {
			fields = append(fields, strings.Fields(line))
		}
		names := []string{}
		for _, f := range fields {
			if len(f) != 6 && len(f) != 7 {
				t.Fatalf("%q", f)
			}
			names = append(names, f[0]+" "+f[1]+" "+f[len(f)-1])
		}
		want := []string{"NAME TYPE STATUS", "a cds ACKED", "longer-name cds ACKED", "a eds ACKED"}
		if status != 0 || errs != "" || !slices.Equal(names, want) {
			t.Errorf("%s: status %d, %q, standard error %s\n%s", variant, status, names, errs, out)
		}
		if status, out, errs := get("-o", "name", "cds", "eds:a"); status != 0 || out != "cds:a\ncds:longer-name\neds:a\n" {
			t.Errorf("%s: status %d, %s%s", variant, status, out, errs)
		}
		if status, out, errs := get("--output", "yaml", "sds:s"); status != 0 || strings.Contains(out, "MARK3R") || !strings.Contains(out, "[redacted]") {
			t.Errorf("%s: status %d, %s%s", variant, status, out, errs)
		}
		if status, out, errs := get("--output", "yaml", "--show-secrets", "sds:s"); status != 0 || !strings.Contains(out, "MARK3R") {
			t.Errorf("%s: status %d, %s%s", variant, status, out, errs)
		}
	}
}

func TestGetJSON(t *testing.T) {
	t.Parallel()
	m := managed(t, cluster("a"))
	status, out, errs := runOnce(t, "get", "--server", m.Addr(), "--resource-timeout", silence, "--output", "json", "cds:a", "cds:missing")
	out = updated.ReplaceAllString(strings.ReplaceAll(strings.ReplaceAll(out, m.Addr(), "SERVER"), `"updated": "`, `"updated":"`), `"updated":NOW`)
	const want = `[
  {
    "type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "name": "a",
    "authority": null,
    "status": "ACKED",
    "version": "1",
    "server": "SERVER",
    "updated":NOW,
    "error": null,
    "size": 3,
    "resource": {
      "name": "a"
    }
  },
  {
    "type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "name": "missing",
    "authority": null,
    "status": "DOES_NOT_EXIST",
    "version": "",
    "server": "SERVER",
    "updated": null,
    "error": null,
    "size": 0,
    "resource": null
  }
]
`
	if status != 3 || out != want || !strings.Contains(errs, `xdsctl: cds "missing": does not exist`) {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
}

// answering has a scripted server answer each type's first request with a resource.
func answering(m proto.Message) testutil.Option {
	return testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		if r.Nonce() == "" {
			_ = st.Send(testutil.SotW(r.TypeURL(), "4", "n", m))
		}
	})
}

// What is wrong decides the status.
func TestGetStatus(t *testing.T) {
	t.Parallel()
	m := managed(t, cluster("a"), &routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{{Domains: []string{"*"}}}})
	nobody := viewtest.Nobody(t).String()
	silent := server(t)
	for _, tt := range []struct {
		args   string
		status int
		stderr string
	}{
		{"--server " + m.Addr() + " cds", 0, ""},
		{"--server " + m.Addr() + " sds", 0, ""}, // there are none
		{"--server " + m.Addr() + " --resource-timeout 100ms cds:b", 3, `cds "b": does not exist (`},
		{"--server " + m.Addr() + " --resource-timeout 1s eds:backend", 3,
			`eds "backend": does not exist (the server did not answer in time; the newest response of the type, at `}, // U-1: what came instead

		{"--server " + m.Addr() + " rds:r", 3, `rds "r": xds: envoy.config.route.v3.RouteConfiguration "r" of server`}, // refused
		{"--server " + silent.Target() + " --for 200ms cds:a", 3, `cds "a": no answer when the time was up`},
		{"--server " + nobody + " cds", 1, "the server cannot be reached"},
		{"--server " + m.Addr() + " xdstp://no.where/envoy.config.cluster.v3.Cluster/x", 3, "no.where"},
		{"--server " + m.Addr(), 2, "nothing to get"},
		{"--server " + m.Addr() + " -o xml cds", 2, "want table, json, yaml or name"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			status, out, errs := runOnce(t, append([]string{"get"}, strings.Fields(tt.args)...)...)
			if status != tt.status || !strings.Contains(errs, tt.stderr) || tt.stderr == "" && errs != "" {
				t.Errorf("status %d, standard error %s, output\n%s", status, errs, out)
			}
		})
	}
}

// What is printed as YAML is a file source, whether or not secrets are in it.
func TestGetYAMLIsAFileSource(t *testing.T) {
	t.Parallel()
	m := managed(t, cluster("a"), cluster("b"), secretOf("MARK3R"))
	for _, secrets := range []string{"--show-secrets=false", "--show-secrets"} {
		status, text, errs := runOnce(t, "get", "--server", m.Addr(), "-o", "yaml", secrets, "cds", "sds:s")
		first, second, ok := strings.Cut(text, "---\n")
		if status != 0 || !ok {
			t.Fatalf("status %d, %s\n%s", status, errs, text)
		}
		for _, tt := range []struct {
			document, name string
			kind           resource.AnyType
		}{{first, "a", cds.Type}, {first, "b", cds.Type}, {second, "s", sds.Type}} {
			if got := fromFile(t, tt.document, tt.kind, tt.name); got != "ok" {
				t.Errorf("%s: %s of\n%s", tt.name, got, tt.document)
			}
		}
	}
}

// A resource that is missing does not take the version from those that are there.
func TestGetYAMLVersion(t *testing.T) {
	t.Parallel()
	m := managed(t, cluster("a"), cluster("b"))
	status, text, errs := runOnce(t, "get", "--server", m.Addr(), "-o", "yaml", "--resource-timeout", silence, "cds:a", "cds:b", "cds:ab")
	if status != 3 || !strings.Contains(text, "\nversion_info: ") {
		t.Errorf("status %d, %s\n%s", status, errs, text)
	}
}

// fromFile is what the library reads of a resource in a file of YAML: "ok", or what is wrong.
func fromFile(t *testing.T, document string, kind resource.AnyType, name string) string {
	t.Helper()
	path := file(t, "resources.yaml", document)
	c, err := client.New(client.Config{Bootstrap: &bootstrap.Config{
		Servers: []bootstrap.ManagementServer{{URI: "file://" + path, Carrier: &bootstrap.File{Path: path}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Get(patient(t), kind, name); err != nil {
		return err.Error()
	}
	return "ok"
}

// TLS, headers and node reach a real server.
func TestServerFlags(t *testing.T) {
	t.Parallel()
	ca, err := testutil.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	issue := func(o testutil.CertOptions) (*testutil.Cert, testutil.CertFiles) {
		c, err := ca.Issue(o)
		if err != nil {
			t.Fatal(err)
		}
		files, err := c.WriteFiles(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return c, files
	}
	srvCert, _ := issue(testutil.CertOptions{DNS: []string{"xds.example"}})
	_, mine := issue(testutil.CertOptions{CommonName: "me"})
	node := file(t, "node.yaml", "id: from-file\ncluster: c\nmetadata: {a: 1, b: 2}\nlocality: {zone: z}\n")
	own, err := srvCert.TLS()
	if err != nil {
		t.Fatal(err)
	}
	srv := server(t, answering(cluster("a")), testutil.GRPCOptions(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	}))))
	flags := []string{"get", "--server", srv.Target(), "--server-name", "xds.example", "--ca-cert", mine.CA}
	with := func(more ...string) []string { return append(slices.Clone(flags), more...) }

	status, _, errs := runOnce(t, with("--cert", mine.Cert, "--key", mine.Key, "--header", "X-Token=secret=1", "--header", "x-two=2",
		"--node", node, "--node-metadata", `{"b": {"c": true}}`, "cds")...)
	if status != 0 {
		t.Fatalf("status %d, %s", status, errs)
	}
	st, r := acceptFirst(t, srv)
	if got := fmt.Sprint(st.Metadata.Get("x-token"), st.Metadata.Get("x-two")); got != "[secret=1] [2]" {
		t.Errorf("headers %s", got)
	}
	n := r.Node()
	if n.GetId() != "from-file" || n.GetCluster() != "c" || n.GetLocality().GetZone() != "z" {
		t.Errorf("node %v", n)
	}
	if got, want := n.GetMetadata().AsMap(), `map[a:1 b:map[c:true]]`; fmt.Sprint(got) != want {
		t.Errorf("metadata %v, want %s", got, want)
	}

	// Without a certificate, and with a wrong name, there is no server.
	for _, args := range [][]string{with("cds"), {"get", "--server", srv.Target(), "--ca-cert", mine.CA, "cds"}, {"get", "--server", srv.Target(), "--tls", "cds"}} {
		if status, _, errs := runOnce(t, args...); status != 1 || !strings.Contains(errs, "the server cannot be reached") {
			t.Errorf("%v: status %d, %s", args, status, errs)
		}
	}
}

// Flags that say what cannot be are bad usage.
func TestServerFlagUsage(t *testing.T) {
	t.Parallel()
	ok := file(t, "ok.pem", "")
	for _, tt := range []struct{ args, want string }{
		{"--cert " + ok, "--cert and --key belong together"},
		{"--ca-cert /does/not/exist", "--ca-cert: stat /does/not/exist"},
		{"--ca-cert /", "--ca-cert: /: not a regular file"},
		{"--ca-cert " + ok, "ok.pem: there is no certificate in it"},
		{"--cert " + ok + " --key " + ok, "--cert, --key: tls: failed to find any PEM data in certificate input"},
		{"--header hidden", "--header number 1: want KEY=VALUE"},
		{"--header grpc-x=hidden", "xdsctl: --header number 1: \"grpc-x\": the key is gRPC's own\n"},
		{"--header a=1 --header =hidden", "xdsctl: --header number 2: the key is required\n"},
		{"--header a=\x01", "xdsctl: --header number 1: \"a\": the value is not printable ASCII\n"},
		{"--node /does/not/exist", "--node: open /does/not/exist"},
		{"--node " + file(t, "list.yaml", "[1]"), "want an object"},
		{"--node " + file(t, "typo.yaml", "idd: a"), "typo.yaml: unknown field \"idd\"\n"},
		{"--node " + file(t, "number.yaml", "id: 1"), "number.yaml: invalid value for string field id\n"},
		{"--node-metadata [1]", "--node-metadata: want a JSON object: syntax error unexpected token\n"},
	} {
		for _, command := range []string{"get", "watch"} {
			status, out, errs := runOnce(t, append([]string{command, "--server", "127.0.0.1:1", "cds"}, words(tt.args)...)...)
			if status != 2 || out != "" || !strings.Contains(errs, tt.want) || strings.Contains(errs, "hidden") {
				t.Errorf("%s %s: status %d, %s", command, tt.args, status, errs)
			}
		}
	}
	for _, name := range serverFlagNames {
		args := []string{"get", "--bootstrap", "x", "cds", "--" + name}
		if name != "tls" {
			args = append(args, "x")
		}
		if status, _, errs := runOnce(t, args...); status != 2 || !strings.Contains(errs, "--"+name+" belongs to --server") {
			t.Errorf("--%s: status %d, %s", name, status, errs)
		}
	}
}

// The name of a resource that has none of its own is kept in YAML.
func TestGetYAMLWraps(t *testing.T) {
	t.Parallel()
	srv := server(t, answering(testutil.Wrapped("x", "4", &routev3.RouteConfiguration{})))
	_, out, errs := runOnce(t, "get", "--server", srv.Target(), "-o", "yaml", "rds:x")
	const want = `resources:
- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource
  name: x
  resource:
    '@type': type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  version: "4"
type_url: type.googleapis.com/envoy.config.route.v3.RouteConfiguration
version_info: "4"
`
	if out != want {
		t.Errorf("%s\n%s", out, errs)
	}
}

// Several authorities tell at the same time.
func TestCollectorIsSafe(t *testing.T) {
	t.Parallel()
	var c collector
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 1000 {
				about := report.About{Type: clusters, Name: fmt.Sprint(i, " ", j)}
				if err := c.Print(report.Synced{About: about}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := len(c.held); n != 4000 {
		t.Errorf("%d resources", n)
	}
}

// What is told when the time is up already is no answer, of a resource or of a collection.
func TestAnswerAfterTheEnd(t *testing.T) {
	t.Parallel()
	var c collector
	s := &session{target: &target{plan: &plan{}}, output: newOutput(&c), subs: map[subscription.Subscription]*subscribed{}}
	for _, sub := range []subscription.Subscription{{TypeURL: clusters, Name: "a"}, {TypeURL: clusters, Collection: true}} {
		s.subs[sub] = s.newSubscribed(subscription.Given{Subscription: sub})
	}
	s.output.end(nil)
	for _, sub := range s.subs {
		s.tell(sub, client.Event[any]{Kind: client.EventSynced, Type: clusters, Name: sub.name})
	}
	items := c.items(s)
	for _, it := range items {
		if it.Status != report.StatusRequested {
			t.Errorf("%q is %s", it.Name, it.Status)
		}
	}
	if len(items) != 2 {
		t.Errorf("items are %v", items)
	}
}

// Where a server cannot be reached, what is missing or refused elsewhere is told all the same.
func TestGetTellsAll(t *testing.T) {
	t.Parallel()
	boot := file(t, "boot.json", fmt.Sprintf(`{"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}]}],
		"authorities": {"dead": {"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}]}}}`, managed(t, cluster("a")).Addr()))
	status, _, errs := runOnce(t, "get", "--bootstrap", boot, "--resource-timeout", silence, "cds:zz", "xdstp://dead/envoy.config.cluster.v3.Cluster/x", "cds:a")
	if status != 1 || !strings.Contains(errs, `"zz": does not exist`) || !strings.Contains(errs, "xdsctl: cds \"xdstp://dead/envoy.config.cluster.v3.Cluster/x\": xds: ") {
		t.Errorf("status %d, %s", status, errs)
	}
}
