package otelmetrics_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/configdump"
	"github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/otelmetrics"
	"github.com/xdswatch/xdswatch/otelmetrics/oteltrace"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/statuspage"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/transport/file"
)

// planted is what stands in every secret.
const planted = "MARK3R"

// outlet is everything that comes out of a client.
type outlet struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *outlet) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// add takes values in every form in which programs print them.
func (o *outlet) add(values ...any) {
	for _, v := range values {
		text, _ := json.Marshal(v) // a function cannot be written
		fmt.Fprintf(o, "%v\n%+v\n%#v\n%s\n", v, v, v, text)
	}
}

// leaks finds the planted text, as it is or as bytes are printed.
func (o *outlet) leaks(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.text.String()
	forms := []string{planted, fmt.Sprintf("%x", planted), strings.Trim(fmt.Sprint([]byte(planted)), "[]")}
	for before := range 3 { // in base64 a byte looks as its place has it
		code := base64.StdEncoding.EncodeToString([]byte("xx"[:before] + planted + "xx"))
		forms = append(forms, code[4:8])
	}
	for _, form := range forms {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%q is in …%s…", form, text[max(0, i-500):min(len(text), i+200)])
		}
	}
}

// name is that of a resource at an authority.
func name(authority string, kind resource.AnyType, id string) string {
	return "xdstp://" + authority + "/" + strings.TrimPrefix(kind.TypeURL(), resource.TypePrefix) + "/" + id
}

// source has the resources of an authority: a Secret, one that does not parse, and a cluster with a key in an Any.
func source(t *testing.T, authority string) map[string]*anypb.Any {
	t.Helper()
	inAny := func(m proto.Message) *anypb.Any {
		a, err := anypb.New(m)
		must(t, err)
		return a
	}
	key := &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: planted}}
	cert := &tlsv3.TlsCertificate{PrivateKey: key}
	broken := inAny(&tlsv3.Secret{Name: name(authority, sds.Type, "bad"), Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: cert}})
	broken.Value = append(broken.Value, "\x12\x06"+planted...) // no tls_certificate
	return map[string]*anypb.Any{
		"bad":  broken,
		"good": inAny(&tlsv3.Secret{Name: name(authority, sds.Type, "good"), Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: cert}}),
		"c": inAny(&clusterv3.Cluster{
			Name: name(authority, cds.Type, "c"),
			TransportSocket: &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{
				TypedConfig: inAny(&tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{cert}}}),
			}},
			Metadata: &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"x": inAny(&discoveryv3.Resource{Name: "r", Resource: broken})}},
		}),
	}
}

// listOf is a response in JSON of what an authority has of a type, with a Secret that does not parse if it
// is to be bad.
func listOf(t *testing.T, authority string, kind resource.AnyType, bad bool) string {
	t.Helper()
	all := source(t, authority)
	a := all["good"]
	if c := new(clusterv3.Cluster); kind.TypeURL() == cds.Type.TypeURL() {
		a = all["c"]
		must(t, a.UnmarshalTo(c))
		c.Metadata = nil // what does not parse has no form in JSON
		must(t, a.MarshalFrom(c))
	}
	b, err := protojson.Marshal(a)
	must(t, err)
	list := []string{string(b)}
	if bad {
		list = append(list, `{"@type":"`+sds.Type.TypeURL()+`","name":"`+name(authority, sds.Type, "bad")+`","tls_certificate":"`+planted+`"}`)
	}
	return `{"version_info":"1","resources":[` + strings.Join(list, ",") + `]}`
}

// scripted answers the first request of a type over gRPC, and says when a NACK came.
func scripted(t *testing.T, o *outlet, authority string, nacks chan<- string) *testutil.Server {
	t.Helper()
	all := source(t, authority)
	srv, err := testutil.ListenServer("127.0.0.1:0", testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
		o.Write(r.Raw)
		o.add(r.String())
		if r.ErrorDetail() != nil {
			nacks <- authority
		}
		if r.Nonce() != "" {
			return
		}
		sotw := &discoveryv3.DiscoveryResponse{TypeUrl: r.TypeURL(), VersionInfo: "1", Nonce: "1"}
		delta := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.TypeURL(), SystemVersionInfo: "1", Nonce: "1"}
		for id, a := range all {
			if a.GetTypeUrl() == r.TypeURL() {
				sotw.Resources = append(sotw.Resources, a)
				kind := resource.AnyType(sds.Type)
				if id == "c" {
					kind = cds.Type
				}
				delta.Resources = append(delta.Resources, &discoveryv3.Resource{Name: name(authority, kind, id), Version: "1", Resource: a})
			}
		}
		if st.Delta {
			_ = st.Send(delta)
		} else {
			_ = st.Send(sotw)
		}
	}))
	must(t, err)
	t.Cleanup(srv.Close)
	return srv
}

// carriers are servers of every kind by their authorities, with planted text in what they send and in the files of
// their credentials.
func carriers(t *testing.T, o *outlet, dir string, nacks chan<- string) map[string]bootstrap.ManagementServer {
	t.Helper()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	ca, err := testutil.NewCA()
	must(t, err)
	cert, err := ca.Issue(testutil.CertOptions{DNS: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	must(t, err)
	pair, err := cert.TLS()
	must(t, err)
	secured, err := testutil.NewManagementServer(testutil.ManagementConfig{TLS: &tls.Config{Certificates: []tls.Certificate{pair}}})
	must(t, err)
	t.Cleanup(secured.Stop)
	roots, chain := write("ca.pem", string(ca.PEM)), write("chain.pem", string(cert.CertPEM))
	pem := func(kind string) string {
		return "-----BEGIN " + kind + "-----\n" + base64.StdEncoding.EncodeToString([]byte(planted)) + "\n-----END " + kind + "-----\n" + planted
	}
	polled := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		o.Write(b)
		kind := resource.AnyType(sds.Type)
		if strings.HasSuffix(r.URL.Path, "clusters") {
			kind = cds.Type
		}
		io.WriteString(w, listOf(t, "rest", kind, kind == resource.AnyType(sds.Type)))
	}))
	t.Cleanup(polled.Close)
	tlsServer := func(creds bootstrap.TLS, token string) bootstrap.ManagementServer {
		s := bootstrap.ManagementServer{URI: secured.Addr(), ChannelCreds: bootstrap.ChannelCreds{Type: "tls", TLS: &creds}}
		if token != "" {
			s.CallCreds = []bootstrap.CallCreds{{Type: "jwt_token_file", TokenFile: token}}
		}
		return s
	}
	return map[string]bootstrap.ManagementServer{
		"sotw":  {URI: scripted(t, o, "sotw", nacks).Target(), ChannelCreds: bootstrap.Insecure()},
		"delta": {URI: scripted(t, o, "delta", nacks).Target(), ChannelCreds: bootstrap.Insecure(), Delta: true},
		"rest": {URI: "polled", ChannelCreds: bootstrap.Insecure(), PerType: true, Carrier: &bootstrap.REST{
			RefreshDelay: 20 * time.Millisecond, RequestTimeout: 5 * time.Second, Endpoints: []bootstrap.RESTEndpoint{{Address: polled.Listener.Addr().String()}},
		}},
		"file":    {URI: "file", PerType: true, Carrier: &bootstrap.File{Path: write("good.json", listOf(t, "file", sds.Type, false))}},
		"cfile":   {URI: "cfile", PerType: true, Carrier: &bootstrap.File{Path: write("c.json", listOf(t, "cfile", cds.Type, false))}},
		"badfile": {URI: "badfile", PerType: true, Carrier: &bootstrap.File{Path: write("bad.json", listOf(t, "badfile", sds.Type, true))}},
		"key":     tlsServer(bootstrap.TLS{CACertificateFile: roots, CertificateFile: chain, PrivateKeyFile: write("key.pem", pem("PRIVATE KEY"))}, ""),
		"ca":      tlsServer(bootstrap.TLS{CACertificateFile: write("badca.pem", pem("CERTIFICATE"))}, ""),
		"token":   tlsServer(bootstrap.TLS{CACertificateFile: roots}, write("token", "a."+planted+".b")),
		"text":    tlsServer(bootstrap.TLS{CACertificateFile: roots}, write("text", planted+"\n"+planted)),
	}
}

// heard watches what every server has, and takes the events until the last one that is wanted.
func heard(t *testing.T, o *outlet, c *client.Client) {
	t.Helper()
	events := make(chan client.Event[any], 100)
	wanted := map[string]client.EventKind{}
	watch := func(authority string, kind resource.AnyType, id string, want client.EventKind) {
		wanted[name(authority, kind, id)] = want
		_, err := c.Watch(t.Context(), kind, name(authority, kind, id), func(ev client.Event[any]) { events <- ev })
		must(t, err)
	}
	for _, authority := range []string{"sotw", "delta", "rest"} {
		watch(authority, sds.Type, "good", client.EventUpdated)
		watch(authority, sds.Type, "bad", client.EventFailed)
		watch(authority, cds.Type, "c", client.EventUpdated)
	}
	watch("file", sds.Type, "good", client.EventUpdated)
	watch("cfile", cds.Type, "c", client.EventUpdated)
	for _, authority := range []string{"badfile", "key", "ca", "token", "text"} {
		watch(authority, sds.Type, "bad", client.EventFailed)
	}
	for len(wanted) > 0 {
		select {
		case ev := <-events:
			o.add(ev, ev.Err)
			if ev.Kind == wanted[ev.Name] {
				delete(wanted, ev.Name)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("events of %v do not come", wanted)
		}
	}
}

// shown takes what the services and pages about a client show.
func shown(t *testing.T, o *outlet, c *client.Client, recorder *statuspage.Recorder) {
	t.Helper()
	status, err := csds.New(csds.Config{}, c).FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
	must(t, err)
	b, err := proto.Marshal(status)
	must(t, err)
	o.Write(b)
	o.add(status)

	pages := http.StripPrefix("/debug", statuspage.New(c, statuspage.Config{Recorder: recorder}))
	get := func(h http.Handler, path string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		if w.Code != http.StatusOK {
			t.Errorf("%s has status %d", path, w.Code)
		}
		o.Write(w.Body.Bytes())
	}
	for _, page := range []string{"", "resources", "watches", "views", "exchanges", "config_dump"} {
		get(pages, "/debug/"+page)
		get(pages, "/debug/"+page+"?format=json&contents=true")
	}
	get(configdump.Handler(c), "/config_dump?include_eds")
	for _, s := range c.Dump() {
		o.add(s)
		query := url.Values{"type": {s.Type}, "name": {s.Name}}.Encode()
		get(pages, "/debug/resource?"+query)
		get(pages, "/debug/resource?format=json&contents=true&"+query)
	}
}

// What is secret in resources of every carrier, in headers and in files of credentials is in nothing that
// comes out: logs, events, states, what a trace is told, spans, metrics, NACKs, the pages and services about
// a client, and the store.
//
// spec: H-3
func TestNoSecretComesOut(t *testing.T) {
	if testing.Short() {
		t.Skip("long: every carrier and everything that comes out")
	}
	o, nacks, dir := &outlet{}, make(chan string, 100), t.TempDir()
	servers := carriers(t, o, dir, nacks)
	boot := &bootstrap.Config{Servers: []bootstrap.ManagementServer{servers["sotw"]}, Authorities: map[string]bootstrap.Authority{}}
	for authority, s := range servers {
		s.Headers = []bootstrap.Header{{Key: "authorization", Value: "Bearer " + planted}}
		boot.Authorities[authority] = bootstrap.Authority{Servers: []bootstrap.ManagementServer{s}}
	}

	spans, reader := tracetest.NewSpanRecorder(), sdk.NewManualReader()
	instruments, err := otelmetrics.New(sdk.NewMeterProvider(sdk.WithReader(reader)), otelmetrics.Config{Target: "t"})
	must(t, err)
	recorder := &statuspage.Recorder{}
	tracer := oteltrace.New(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))
	headers := []bootstrap.Header{{Key: "x-key", Value: planted}}
	grpcConfig, restConfig := transport.GRPCConfig{Headers: headers}, transport.RESTConfig{Headers: headers}
	kept := filepath.Join(dir, "store")
	c, err := client.New(client.Config{
		Bootstrap: boot, Metrics: instruments.Hooks(), SkipValidation: true, Store: store.Dir(kept, store.Options{}),
		Logger:    slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Transport: file.NewBuilder(file.Config{Settle: -1}, transport.ByServer{GRPC: transport.NewGRPC(grpcConfig), REST: transport.NewREST(restConfig)}),
		Trace: tracer.Trace(recorder.Trace(&client.Trace{
			StreamUp: func(i client.StreamInfo) { o.add(i) }, StreamDown: func(i client.StreamInfo, err error) { o.add(i, err) },
			Request: func(i client.RequestInfo) { o.add(i) }, Response: func(i client.ResponseInfo) { o.add(i) },
			ACK: func(i client.AnswerInfo) { o.add(i) }, NACK: func(i client.AnswerInfo) { o.add(i) },
		})),
	})
	must(t, err)
	defer c.Close()
	registration, err := instruments.Observe(c)
	must(t, err)
	defer func() { must(t, registration.Unregister()) }()

	heard(t, o, c)
	for refused := map[string]bool{}; len(refused) < 2; {
		refused[<-nacks] = true
	}

	_, err = tracer.Get(t.Context(), c, sds.Type, name("sotw", sds.Type, "good"))
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, failure := tracer.Get(ctx, c, sds.Type, name("delta", sds.Type, "bad"))
	o.add(failure, tracer.Ready(ctx, c), c.Gauges(), boot)
	lines, err := collect(reader)
	must(t, err)
	o.add(lines)

	shown(t, o, c, recorder)
	c.Close()
	<-c.Done()
	for _, s := range spans.Ended() {
		o.add(s.Name(), s.Attributes(), s.Events(), s.Status())
	}
	files := 0
	must(t, filepath.WalkDir(kept, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var b []byte
			b, err = os.ReadFile(path)
			o.Write(b)
			files++
		}
		return err
	}))
	if files == 0 || len(spans.Ended()) == 0 || len(lines) == 0 {
		t.Errorf("%d files are kept, %d spans ended, %d metrics: want some", files, len(spans.Ended()), len(lines))
	}
	o.leaks(t)
}
