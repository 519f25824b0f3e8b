package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	csdsservice "github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
)

// said is a process that says what it is told to.
type said struct {
	statusv3.UnimplementedClientStatusDiscoveryServiceServer
	resp *statusv3.ClientStatusResponse
}

func (s said) FetchClientStatus(context.Context, *statusv3.ClientStatusRequest) (*statusv3.ClientStatusResponse, error) {
	return s.resp, nil
}

// serveProcess serves a client status service and says where.
func serveProcess(t *testing.T, register func(grpc.ServiceRegistrar), opts ...grpc.ServerOption) (address string) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(opts...)
	register(srv)
	go srv.Serve(lis)
	t.Cleanup(srv.Stop)
	return lis.Addr().String()
}

func saying(resp *statusv3.ClientStatusResponse) func(grpc.ServiceRegistrar) {
	return func(r grpc.ServiceRegistrar) {
		statusv3.RegisterClientStatusDiscoveryServiceServer(r, said{resp: resp})
	}
}

// daysAgo is long ago, so that an age is the same for a while.
func daysAgo() *timestamppb.Timestamp {
	return timestamppb.New(time.Now().Add(-53*time.Hour - 30*time.Minute))
}

type genericConfig = statusv3.ClientConfig_GenericXdsConfig

// ofEdge is what a process says that holds some resources, was refused one and waits for others.
func ofEdge() *statusv3.ClientStatusResponse {
	ago := daysAgo()
	return &statusv3.ClientStatusResponse{Config: []*statusv3.ClientConfig{{Node: &corev3.Node{Id: "edge-1"}, GenericXdsConfigs: []*genericConfig{
		{TypeUrl: cds.Type.TypeURL(), Name: "backend", VersionInfo: "1", XdsConfig: packed(&clusterv3.Cluster{Name: "backend"}), LastUpdated: ago,
			ClientStatus: adminv3.ClientResourceStatus_NACKED, ErrorState: &adminv3.UpdateFailureState{Details: "invalid Cluster.ConnectTimeout", VersionInfo: "2", LastUpdateAttempt: ago}},
		{TypeUrl: eds.Type.TypeURL(), Name: "backend", VersionInfo: "1", XdsConfig: packed(assignment("backend", "10.0.1.1")), LastUpdated: ago, ClientStatus: adminv3.ClientResourceStatus_ACKED},
		{TypeUrl: lds.Type.TypeURL(), Name: "ingress", ClientStatus: adminv3.ClientResourceStatus_REQUESTED, LastUpdated: timestamppb.New(time.Time{})},
	}}}}
}

// Names, statuses, versions, ages and errors are printed, scopes where there are some, and --check judges.
func TestStatus(t *testing.T) {
	t.Parallel()
	edge := serveProcess(t, saying(ofEdge()))
	const table = `NAME     TYPE  STATUS     VERSION  AGE   ERROR
backend  cds   NACKED     1        2d5h  invalid Cluster.ConnectTimeout
backend  eds   ACKED      1        2d5h
ingress  lds   REQUESTED  -        -
`
	for _, tt := range []struct {
		args   string
		status int
		out    string
	}{
		{"status " + edge, 0, table},
		{"status --check " + edge, 3, table},
		{"status csds:" + edge, 0, table},
	} {
		if status, out, errs := runOnce(t, strings.Fields(tt.args)...); status != tt.status || out != tt.out || errs != "" {
			t.Errorf("%s: status %d, %s\n%s", tt.args, status, errs, out)
		}
	}
	well := ofEdge()
	well.Config = append(well.Config, &statusv3.ClientConfig{ClientScope: "blue", GenericXdsConfigs: well.Config[0].GenericXdsConfigs[1:2]})
	well.Config[0].GenericXdsConfigs = well.Config[0].GenericXdsConfigs[1:]
	const scoped = `SCOPE  NAME     TYPE  STATUS     VERSION  AGE   ERROR
-      backend  eds   ACKED      1        2d5h
-      ingress  lds   REQUESTED  -        -
blue   backend  eds   ACKED      1        2d5h
`
	if status, out, errs := runOnce(t, "status", "--check", serveProcess(t, saying(well))); status != 0 || out != scoped {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
	status, out, errs := runOnce(t, "status", "-o", "json", edge)
	const row = `    "scope": "",
    "type": "type.googleapis.com/envoy.config.listener.v3.Listener",
    "name": "ingress",
    "status": "REQUESTED",
    "version": "",
    "updated": null,
    "error": null
  }
]
`
	if status != 0 || !strings.HasSuffix(out, row) || !strings.Contains(out, `"kind": "rejected"`) || strings.Contains(out, `"resource"`) {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
}

// clientOf is a client of the server at an address, as a program has it.
func clientOf(t *testing.T, address string) *client.Client {
	t.Helper()
	boot, err := bootstrap.Server(address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A process without a server is not well: what it asked for and does not have is bad.
func TestStatusOfClientWithoutServer(t *testing.T) {
	t.Parallel()
	c := clientOf(t, viewtest.Nobody(t).String())
	failed := make(chan error, 1)
	if _, err := c.Watch(t.Context(), cds.Type, "a", func(ev client.Event[any]) { failed <- ev.Err }); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Fatal("the watch has not failed")
	}
	address := serveProcess(t, func(r grpc.ServiceRegistrar) { csdsservice.Register(r, csdsservice.Config{}, c) })
	status, out, errs := runOnce(t, "status", "--check", address)
	if status != 3 || !strings.Contains(out, "a     cds   REQUESTED") || !strings.Contains(out, "the server cannot be reached") {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
}

// What a program serves with package csds is read.
func TestStatusOfClient(t *testing.T) {
	t.Parallel()
	m := managed(t, cluster("a"))
	c := clientOf(t, m.Addr())
	if _, err := c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) {}); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	address := serveProcess(t, func(r grpc.ServiceRegistrar) { csdsservice.Register(r, csdsservice.Config{}, c) })
	status, out, errs := runOnce(t, "status", "--check", address)
	if status != 0 || !strings.Contains(out, "a     cds   ACKED   1") {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
	status, out, errs = runOnce(t, "diff", "server:"+m.Addr(), "csds:"+address)
	if status != 0 || out != "" {
		t.Errorf("diff: status %d, %s\n%s", status, errs, out)
	}
}

// All of it is printed in three forms, each of which other commands read; secrets in none.
//
// spec: H-3
func TestCSDSAndDump(t *testing.T) {
	t.Parallel()
	resp := ofEdge()
	rows := &resp.Config[0].GenericXdsConfigs
	*rows = append(*rows, &genericConfig{TypeUrl: sds.Type.TypeURL(), Name: "s", XdsConfig: packed(secretOf("MARK3R")), ClientStatus: adminv3.ClientResourceStatus_ACKED},
		&genericConfig{TypeUrl: lds.Type.TypeURL(), Name: "refused", ClientStatus: adminv3.ClientResourceStatus_NACKED,
			ErrorState: &adminv3.UpdateFailureState{Details: "no", FailedConfiguration: packed(&listenerv3.Listener{Name: "refused"})}})
	edge := serveProcess(t, saying(resp))
	dir := t.TempDir()
	save := func(name string, args ...string) string {
		t.Helper()
		status, out, errs := runOnce(t, args...)
		if status != 0 || errs != "" {
			t.Fatalf("%s: status %d, %s", args, status, errs)
		}
		if strings.Contains(out, "MARK3R") || strings.Contains(out, "TUFSSzNS") {
			t.Errorf("%s: the secret is in %s", args, out)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list, yaml, envoy := save("list.json", "csds", "-o", "json", edge), save("a.yaml", "csds", edge), save("envoy.json", "dump", edge)
	raw := filepath.Join(dir, "raw.json")
	text, err := protojson.Marshal(resp)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(raw, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{yaml, envoy} {
		if status, out, errs := runOnce(t, "diff", path, envoy); status != 0 {
			t.Errorf("%s: status %d, %s\n%s", path, status, errs, out)
		}
	}
	var held []map[string]any
	content, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &held); err != nil || len(held) != 5 || held[0]["resource"].(map[string]any)["name"] != "backend" || held[2]["resource"] != nil {
		t.Errorf("%v: %s", err, content)
	}
	for name, from := range map[string]string{"of an answer": raw, "of a dump": envoy} {
		again := save("again.json", "dump", from)
		if status, out, errs := runOnce(t, "diff", again, envoy); status != 0 {
			t.Errorf("%s: status %d, %s\n%s", name, status, errs, out)
		}
		status, out, errs := runOnce(t, "dump", "-o", "json", from)
		if status != 0 || !strings.Contains(out, `"status": "NACKED"`) || !strings.Contains(out, `"name": "refused"`) {
			t.Errorf("%s: status %d, %s\n%s", name, status, errs, out)
		}
		save("files.yaml", "dump", "--format", "yaml", from)
	}
	if a, b := save("x", "dump", edge), save("y", "dump", "--output", "envoy", edge); a == b {
		t.Error(a)
	}
}

// Envoy's administration is read by its URL, as a state of diff and validate too.
func TestDumpOfURL(t *testing.T) {
	t.Parallel()
	status, dump, errs := runOnce(t, "dump", serveProcess(t, saying(ofEdge())))
	if status != 0 {
		t.Fatal(errs)
	}
	var asked []string
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		if strings.HasPrefix(r.URL.Path, "/config_dump") {
			_, _ = w.Write([]byte(dump))
			return
		}
		http.NotFound(w, r)
	}))
	defer admin.Close()
	b := resourceFile(t, "b.yaml", cluster("b"))
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"status " + admin.URL, 0, "backend  cds   NACKED  1        2d5h  invalid Cluster.ConnectTimeout"},
		{"csds " + admin.URL + "/config_dump?include_eds", 0, "clusterName: backend"},
		{"dump -o yaml " + admin.URL + "/", 0, "clusterName: backend"},
		{"diff " + admin.URL + " " + b, 3, "+ cds b\n- cds backend\n- eds backend\n"},
		{"validate " + admin.URL, 0, ""},
		{"dump " + admin.URL + "/nothing", 1, "404"},
		{"validate " + admin.URL + "/nothing", 1, "404"},
	} {
		status, out, errs := runOnce(t, words(tt.args)...)
		if status != tt.status || !strings.Contains(out+errs, tt.want) {
			t.Errorf("%s: status %d, %s\n%s", tt.args, status, errs, out)
		}
	}
	if asked[0] != "/config_dump?include_eds" {
		t.Errorf("asked for %q", asked)
	}
}

// Envoy's form does not have what is missing, so a good end of --check is told with that.
func TestStatusCheckOfURL(t *testing.T) {
	t.Parallel()
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"configs":[]}`)) }))
	defer admin.Close()
	for _, args := range [][]string{{"status", admin.URL}, {"status", "--check", admin.URL}} {
		status, _, errs := runOnce(t, args...)
		if status != 0 || strings.Contains(errs, "only what is in use") != (len(args) == 3) {
			t.Errorf("%s: status %d, %s", args, status, errs)
		}
	}
}

// Nothing of what is no dump is told.
func TestDumpOfNoHTTP(t *testing.T) {
	t.Parallel()
	for _, sent := range []string{
		"MARK3R\r\n\r\n", "HTTP/1.1 MARK3R\r\n\r\n", "HTTP/1.1 500 MARK3R\r\n\r\n", "HTTP/1.1 200 OK\r\nMARK3R\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: MARK3R\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: MARK3R\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nMARK3R",
	} {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<12))
			_, _ = conn.Write([]byte(sent))
			conn.Close()
		}()
		status, out, errs := runOnce(t, "dump", "http://"+lis.Addr().String())
		lis.Close()
		if status != 1 || out != "" || !strings.HasPrefix(errs, "xdsctl: http://") || strings.Contains(errs, "MARK3R") {
			t.Errorf("%q: status %d, %s%s", sent, status, out, errs)
		}
	}
}

// A process may speak TLS, and know its operators by certificates.
func TestStatusTLS(t *testing.T) {
	t.Parallel()
	ca, err := testutil.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Issue(testutil.CertOptions{DNS: []string{"edge.example"}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := cert.WriteFiles(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own, err := cert.TLS()
	if err != nil {
		t.Fatal(err)
	}
	address := serveProcess(t, saying(ofEdge()), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	secured := []string{"--ca-cert", files.CA, "--server-name", "edge.example", "--cert", files.Cert, "--key", files.Key}
	for _, tt := range []struct {
		args   string
		status int
		stdout string
	}{
		{"status " + address, 0, "backend"},
		{"diff csds:" + address + " " + t.TempDir(), 3, "- cds backend\n"},
		{"validate csds:" + address, 0, ""},
	} {
		status, out, errs := runOnce(t, append(words(tt.args), secured...)...)
		if status != tt.status || !strings.Contains(out, tt.stdout) {
			t.Errorf("%s: status %d, %s\n%s", tt.args, status, errs, out)
		}
	}
	for args, want := range map[string]string{"--tls": "certificate", "--ca-cert " + files.Key: "there is no certificate in it", "--cert x": "--cert and --key belong together"} {
		for _, command := range []string{"status --for 1m " + address, "validate csds:" + address, "diff " + t.TempDir() + " csds:" + address} {
			if status, _, errs := runOnce(t, append(words(command), words(args)...)...); status != 1 && status != 2 || !strings.Contains(errs, want) {
				t.Errorf("%s %s: status %d, %s", command, args, status, errs)
			}
		}
	}
	if status, _, errs := runOnce(t, "validate", "--tls", "."); status != 2 || !strings.Contains(errs, "--tls belongs to csds:HOST:PORT") {
		t.Errorf("status %d, %s", status, errs)
	}
}

func TestStatusErrors(t *testing.T) {
	t.Parallel()
	nobody := viewtest.Nobody(t).String()
	none := serveProcess(t, func(grpc.ServiceRegistrar) {})
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"status", 2, "want one ADDRESS"},
		{"csds a:1 b:1", 2, "want one ADDRESS"},
		{"dump", 2, "want one ADDRESS or FILE"},
		{"status nowhere", 2, `"nowhere" is no ADDRESS; want HOST:PORT or a URL`},
		{"status --for 0s " + nobody, 2, "want more than nothing"},
		{"status " + nobody, 1, nobody + ": "},
		{"status " + none, 1, "Unimplemented"},
		{"dump /does/not/exist.json", 1, "no such file"},
		{"dump " + file(t, "x.json", `{"a": "MARK3R"}`), 1, "neither a config dump"},
		{"dump " + file(t, "y.json", `{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "version_info": ["MARK3R"]}]}`), 1, "y.json: "},
		{"dump --format xml " + nobody, 2, "want envoy, json or yaml"},
	} {
		status, out, errs := runOnce(t, words(tt.args)...)
		if status != tt.status || out != "" || !strings.Contains(errs, tt.want) || strings.Contains(errs, "MARK3R") {
			t.Errorf("%s: status %d, %s\n%s", tt.args, status, errs, out)
		}
	}
}

// An interrupt is told as one, and what was read until then is no answer.
func TestProcessInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"status", "127.0.0.1:1"}, {"csds", "127.0.0.1:1"}, {"dump", "127.0.0.1:1"}, {"dump", "http://127.0.0.1:1"},
		{"diff", ".", "csds:127.0.0.1:1"}, {"validate", "csds:127.0.0.1:1"}, {"validate", "-"},
	} {
		var out, errs bytes.Buffer
		if status := run(ctx, args, strings.NewReader(""), &out, &errs); status != 1 || errs.String() != "xdsctl: interrupted\n" || out.Len() > 0 {
			t.Errorf("%q: status %d, %s%s", args, status, out.String(), errs.String())
		}
	}
}

// Of a process that is silent it is told which it is, what was waited for and how long.
func TestSilentProcess(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	for _, address := range []string{lis.Addr().String(), "http://" + lis.Addr().String()} {
		want := "xdsctl: " + address + ": the process did not say within 300ms (--for) what it has\n"
		if status, out, errs := runOnce(t, "status", "--for", "300ms", address); status != 1 || out != "" || errs != want {
			t.Errorf("%s: status %d, %s%s", address, status, out, errs)
		}
	}
}
