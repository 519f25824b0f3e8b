package client_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/transport/file"
)

// marker is the content that nothing may tell.
const marker = "MARK3R"

// outlet collects everything that comes out of a client.
type outlet struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *outlet) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// add takes a value in every form in which programs print values.
func (o *outlet) add(v any) {
	fmt.Fprintf(o, "%v\n%+v\n%#v\n%s\n%q\n", v, v, v, v, v)
	text, _ := json.Marshal(v) // a function cannot be written
	fmt.Fprintf(o, "%s\n", text)
	for _, h := range []slog.Handler{slog.NewJSONHandler(o, nil), slog.NewTextHandler(o, nil)} {
		slog.New(h).Info("printed", "value", v)
	}
}

// leaks says whether the marker came out, as text or in another form.
func (o *outlet) leaks(t *testing.T, name string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.text.String()
	decimal := strings.Trim(fmt.Sprint([]byte(marker)), "[]")
	forms := []string{marker, decimal, fmt.Sprintf("%x", marker)}
	for before := range 3 { // in base64 a byte looks as its place has it
		code := base64.StdEncoding.EncodeToString([]byte("xx"[:before] + marker + "xx"))
		forms = append(forms, code[4 : len(code)-4][:4])
	}
	for _, form := range forms {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%s: %q is in …%s…", name, form, text[max(0, i-300):min(len(text), i+100)])
			return
		}
	}
}

// leak watches a Secret at a server until it has failed and the failure was answered, and looks
// for the marker in all that comes out.
func (o *outlet) leak(t *testing.T, name string, server bootstrap.ManagementServer, answered func() bool) {
	t.Helper()
	server.Headers = []bootstrap.Header{{Key: "authorization", Value: "Bearer " + marker}}
	server.ChannelCreds = bootstrap.ChannelCreds{Type: "insecure"}
	config := client.Config{
		Bootstrap: &bootstrap.Config{Servers: []bootstrap.ManagementServer{server}},
		Logger:    slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Transport: file.NewBuilder(file.Config{Settle: -1}, transport.ByServer{
			GRPC: transport.NewGRPC(transport.GRPCConfig{}), REST: transport.NewREST(transport.RESTConfig{}),
		}),
		Trace: &client.Trace{
			StreamUp: func(i client.StreamInfo) { o.add(i) }, StreamDown: func(i client.StreamInfo, err error) { o.add(i); o.add(err) },
			Request: func(i client.RequestInfo) { o.add(i) }, Response: func(i client.ResponseInfo) { o.add(i) },
			ACK: func(i client.AnswerInfo) { o.add(i) }, NACK: func(i client.AnswerInfo) { o.add(i) },
		},
	}
	o.add(config)
	o.add(config.Bootstrap)
	c, err := client.New(config)
	must(t, err)
	defer c.Close()
	o.add(c)
	failed := make(chan struct{}, 1)
	_, err = c.Watch(t.Context(), sds.Type, "s", func(ev client.Event[any]) {
		o.add(ev)
		o.add(ev.Err)
		if ev.Kind == client.EventFailed {
			select {
			case failed <- struct{}{}:
			default:
			}
		}
	})
	must(t, err)
	select {
	case <-failed:
	case <-time.After(2 * time.Second):
		t.Logf("%s: nothing fails", name) // unknown fields and names are no fault over REST
	}
	for begin := time.Now(); answered != nil && !answered() && time.Since(begin) < 2*time.Second; {
		time.Sleep(10 * time.Millisecond)
	}
	for _, s := range c.Dump() {
		o.add(s)
		text, err := json.Marshal(s)
		must(t, err)
		o.add(string(text))
	}
	o.leaks(t, name)
}

const secretURL = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// brokenSecrets are Secrets with the name "s", in JSON, that do not parse.
func brokenSecrets() map[string]string {
	head := `{"@type":"` + secretURL + `","name":"s",`
	wrap := func(inner string) string {
		return `{"@type":"type.googleapis.com/envoy.service.discovery.v3.Resource","name":"s","resource":` + inner + `}`
	}
	all := map[string]string{
		"a text for an object":  head + `"tls_certificate":"` + marker + `"}`,
		"bytes that are none":   head + `"tls_certificate":{"private_key":{"inline_bytes":"!----` + marker + `"}}}`,
		"an unknown field":      head + `"generic_secret":{"` + marker + `":{}}}`,
		"a key in a wrong list": head + `"session_ticket_keys":{"keys":["` + marker + `"]}}`,
		"a value of no enum":    head + `"validation_context":{"trust_chain_verification":"` + marker + `"}}`,
		"a number that is none": head + `"tls_certificate":{"ocsp_staple":` + `{"inline_string":{"` + marker + `":1}}}}`,
		"twice":                 head + `"name":"` + marker + `"}`,
		"no type":               `{"name":"s","generic_secret":"` + marker + `"}`,
		"a type that is none":   `{"@type":"` + marker + `","name":"s"}`,
		"inside a map":          head + `"generic_secret":{"secrets":{"` + marker + `":7}}}`,
		"in an Any":             head + `"tls_certificate":{"private_key_provider":{"provider_name":"p","typed_config":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"` + marker + `"}}}}`,
	}
	for name, text := range all {
		if strings.HasPrefix(text, head) {
			all[name+", wrapped"] = wrap(text)
		}
	}
	return all
}

// spec: H-3
func TestNoSecretOverGRPC(t *testing.T) {
	if testing.Short() {
		t.Skip("long: every way for content to get into a text")
	}
	inline := []byte(`x` + marker)
	bytesOf := func(raw string) *anypb.Any { return &anypb.Any{TypeUrl: secretURL, Value: []byte(raw)} }
	broken := map[string]*anypb.Any{
		"not UTF-8":     bytesOf("\x0a\x01s\x2a\x0c\x0a\x0a\x1a\x08" + marker + "\xff\xff"),
		"ends early":    bytesOf("\x0a\x01s\x12\x7f" + string(inline)),
		"not its type":  {TypeUrl: "type.googleapis.com/google.protobuf.StringValue", Value: bytesOf("\x0a\x07" + string(inline)).Value},
		"breaks a rule": bytesOf("\x0a\x01s\x1a\x0b\x32\x09\x0a\x07" + string(inline)),
	}
	for name, a := range broken {
		for _, wrapped := range []bool{false, true} {
			entry := a
			if wrapped {
				var err error
				entry, err = anypb.New(&discoveryv3.Resource{Name: "s", Resource: a})
				must(t, err)
			}
			o := &outlet{}
			var mu sync.Mutex
			nacked := false
			srv, err := testutil.ListenServer("127.0.0.1:0", testutil.OnRequest(func(st *testutil.Stream, r *testutil.Request) {
				fmt.Fprintln(o, r)
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(fmt.Sprint(r), "error") {
					nacked = true
				}
				if !nacked {
					_ = st.Send(&discoveryv3.DiscoveryResponse{VersionInfo: "1", Nonce: "n", TypeUrl: secretURL, Resources: []*anypb.Any{entry}})
				}
			}))
			must(t, err)
			o.leak(t, fmt.Sprintf("%s, wrapped %v", name, wrapped), bootstrap.ManagementServer{URI: srv.Target()}, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return nacked
			})
			srv.Close()
		}
	}
}

// spec: H-3
func TestNoSecretOverREST(t *testing.T) {
	if testing.Short() {
		t.Skip("long: every way for content to get into a text")
	}
	bodies := map[string]string{
		"half of it":       `{"version_info":"1","resources":[{"@type":"` + secretURL + `","name":"s","generic_secret":{"secret":{"inline_string":"` + marker,
		"no JSON":          `-----BEGIN ` + marker,
		"no list":          `{"resources":"` + marker + `"}`,
		"a list in a list": `{"resources":[["` + marker + `"]]}`,
		"beside it":        `{"resources":[],"control_plane":"` + marker + `"}`,
		"a foreign object": `{"error":"` + marker + `"}`,
	}
	for name, text := range brokenSecrets() {
		bodies[name] = `{"version_info":"1","type_url":"` + secretURL + `","resources":[` + text + `]}`
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for failures that some never have
			o := &outlet{}
			var mu sync.Mutex
			polls := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked, _ := io.ReadAll(r.Body)
				o.Write(asked)
				mu.Lock()
				polls++
				mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, body)
			}))
			server := bootstrap.ManagementServer{URI: "rest", PerType: true, Carrier: &bootstrap.REST{
				RefreshDelay: 20 * time.Millisecond, RequestTimeout: 5 * time.Second, Endpoints: []bootstrap.RESTEndpoint{{Address: srv.Listener.Addr().String()}},
			}}
			o.leak(t, name, server, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return polls > 1
			})
			srv.Close()
		})
	}
}

// spec: H-3
func TestNoSecretOfFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"yaml.yaml":      "resources:\n- \"@type\": " + secretURL + "\n  name: s\n  tls_certificate:\n    private_key: " + marker + "\n",
		"indent.yaml":    "resources:\n- \"@type\": " + secretURL + "\n  generic_secret:\n    secret: {inline_string: |\n  " + marker + "\n",
		"key.yaml":       "resources:\n- " + marker + ": &" + marker + " x\n- *" + marker + "2\n",
		"twice.yaml":     marker + ": 1\n" + marker + ": 2\n",
		"tag.yaml":       "resources: !!int " + marker + "\n",
		"field.pb_text":  "resources { [" + secretURL + "] { name: 's' " + marker + ": 7 } }",
		"value.pb_text":  "resources { [" + secretURL + "] { name: 's' tls_certificate: '" + marker + "' } }",
		"quote.pb_text":  "resources { [" + secretURL + "] { name: '" + marker,
		"type.pb_text":   "resources { [" + marker + "/x] { name: '" + marker + "' } }",
		"bytes.pb":       "\x12\x7f" + marker,
		"nothing":        "-----BEGIN PRIVATE KEY-----\n" + marker + "\n",
		"nothing.json":   `"` + marker + `"`,
		"half.json":      `{"resources":[{"@type":"` + secretURL + `","name":"` + marker,
		"single.json":    `{"name":"s","resource":{"@type":"` + secretURL + `","generic_secret":"` + marker + `"}}`,
		"not-utf8.pb":    "\x12\x52\x0a\x43" + secretURL[:67] + "\x12\x0b\x0a\x09" + marker + "\xff\xff\xff",
		"unknown.json":   `{"` + marker + `":[]}`,
		"reference.json": `{"resources":[{"@type":"` + secretURL + `","name":"s","tls_certificate":{"private_key":{"filename":5,"inline_string":"` + marker + `"}}}]}`,
	}
	i := 0
	for name, text := range brokenSecrets() {
		i++
		files[fmt.Sprintf("%d %s.json", i, strings.ReplaceAll(name, " ", "-"))] = `{"resources":[` + text + `]}`
		files[fmt.Sprintf("%d %s.yaml", i, strings.ReplaceAll(name, " ", "-"))] = `{"resources":[` + text + `]}`
	}
	for name, text := range files {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		(&outlet{}).leak(t, name, bootstrap.ManagementServer{URI: "file", Carrier: &bootstrap.File{Path: path}, PerType: true}, nil)
	}
}

// What programs print of a configuration holds no header, key or token, and what they print of
// events and states no resource.
//
// spec: H-3
func TestNothingSecretIsFormatted(t *testing.T) {
	secret := []byte(marker)
	server := bootstrap.ManagementServer{
		URI: "127.0.0.1:1", Headers: []bootstrap.Header{{Key: "authorization", Value: marker}},
		ChannelCreds: bootstrap.ChannelCreds{Type: "tls", Config: json.RawMessage(`"` + marker + `"`), TLS: &bootstrap.TLS{PrivateKey: secret}},
		CallCreds:    []bootstrap.CallCreds{{Type: "x", Config: json.RawMessage(`"` + marker + `"`)}},
	}
	headers := []bootstrap.Header{{Key: "k", Value: marker}}
	boot := &bootstrap.Config{Servers: []bootstrap.ManagementServer{server}}
	grpc, rest := transport.GRPCConfig{Headers: headers}, transport.RESTConfig{Headers: headers}
	server.CallCreds = nil
	conn, err := transport.NewGRPC(grpc).Build(server)
	must(t, err)
	defer conn.Close()
	value, err := proto.Marshal(&anypb.Any{TypeUrl: marker})
	must(t, err)
	o := &outlet{}
	change, secretState := client.Change{Value: marker, Raw: value}, client.State{Raw: value, Refused: &client.Refused{Raw: value}}
	for _, v := range []any{
		change, &change, client.Proposal{Changed: []client.Change{change}}, &client.Proposal{Changed: []client.Change{change}},
		secretState, secretState.Refused, *secretState.Refused, transport.Frame{Parts: [][]byte{value}},
		&client.Event[any]{Value: marker, Raw: value}, client.Event[string]{Value: marker},
		boot, *boot, server, &server, server.ChannelCreds, server.ChannelCreds.TLS, boot.Servers[0].CallCreds, headers, headers[0],
		grpc, &grpc, rest, &rest, transport.NewGRPC(grpc), transport.NewREST(rest), conn,
		client.Config{Bootstrap: boot, GRPC: grpc}, client.Event[any]{Value: &anypb.Any{TypeUrl: marker}, Raw: value},
		client.Batch[any]{Events: []client.Event[any]{{Value: marker, Raw: value}}}, client.State{Raw: value},
	} {
		o.add(v)
	}
	fmt.Fprintf(o, "%v %+v %#v", client.StoredResource{Resource: value}, client.StoredResource{Resource: value}, &client.StoredResource{Resource: value}) // a store may write it as JSON
	o.leaks(t, "formatted values")
}
