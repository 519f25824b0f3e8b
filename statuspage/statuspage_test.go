package statuspage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/statuspage"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
)

// row is a resource of the JSON.
type row struct {
	Type, Name, Status, Version, Scope string
	Size                               int
	Error                              *struct{ Kind, Message string }
	Resource                           map[string]any
}

type list struct {
	Resources []row
	Total     int
}

func (l list) names() (names []string) {
	for _, r := range l.Resources {
		names = append(names, r.Name)
	}
	return names
}

// The overview has servers, streams, types and sums, for people and for programs.
func TestOverview(t *testing.T) {
	r := newRig(t)
	r.watchAll(cds.Type, cluster("a"), cluster("b"))
	page := r.html("")
	for _, want := range []string{"node-1", r.srv.Target(), "connected", "3 ACKED", `href="resources?type=type.googleapis.com`, "Cluster</a>"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	type overview struct {
		Node    struct{ ID, Cluster string }
		Servers []struct {
			URI, State  string
			Since       string
			Authorities []string
			Resources   int
		}
		Streams []struct{ Responses int }
		Types   []struct {
			Type     string
			Total    int
			Statuses map[string]int
		}
		Watches struct{ Watches, Names, Unanswered int }
	}
	o := decoded[overview](r, "?format=json")
	if o.Node.ID != "node-1" || o.Node.Cluster != "edge" || len(o.Servers) != 1 || len(o.Streams) != 1 || len(o.Types) != 1 {
		t.Fatalf("%+v", o)
	}
	if s := o.Servers[0]; s.State != "connected" || s.Since == "" || s.Resources != 2 || !slices.Equal(s.Authorities, []string{""}) {
		t.Errorf("server: %+v", s)
	}
	if o.Streams[0].Responses != 1 || o.Types[0].Total != 3 || o.Types[0].Statuses["ACKED"] != 3 || o.Watches.Watches != 1 || o.Watches.Unanswered != 0 {
		t.Errorf("%+v", o)
	}
	r.c.Close()
	<-r.c.Done()
	if page := r.html(""); !strings.Contains(page, "The client is closed") {
		t.Error("the page of a closed client does not say so")
	}
}

// A server that went away is told, with since when and why, and what it sent stays.
func TestServerIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("the client waits for up to half a second before it tries again")
	}
	r := newRig(t)
	r.watchAll(cds.Type, cluster("a"))
	r.srv.Close()
	type overview struct {
		Servers []struct{ State, Since, Error string }
		Streams []struct{ Down, Error string }
		Types   []struct{ Statuses map[string]int }
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var o overview
	for len(o.Servers) == 0 || o.Servers[0].State != "not connected" || o.Servers[0].Error == "" {
		select {
		case <-ctx.Done():
			t.Fatalf("%+v", o)
		case <-time.After(10 * time.Millisecond):
			o = decoded[overview](r, "?format=json")
		}
	}
	if o.Servers[0].Since == "" || len(o.Streams) != 1 || o.Streams[0].Down == "" || o.Types[0].Statuses["ACKED"] != 2 {
		t.Errorf("%+v", o)
	}
	if page := r.html(""); !strings.Contains(page, "not connected") || !strings.Contains(page, "ended") {
		t.Error(page)
	}
}

// A list is searched by name, type and status, and has pages.
func TestResources(t *testing.T) {
	r := newRig(t)
	var all []proto.Message
	for i := range 250 {
		all = append(all, cluster(fmt.Sprintf("c-%03d", i)))
	}
	r.watchAll(cds.Type, all...)
	for query, want := range map[string]int{"": 251, "&q=C-01": 10, "&type=Cluster": 251, "&type=Listener": 0, "&status=ACKED": 251, "&status=problem": 0} {
		if l := decoded[list](r, "resources?format=json"+query); l.Total != want || len(l.Resources) != want {
			t.Errorf("%q has %d resources of %d, want %d", query, len(l.Resources), l.Total, want)
		}
	}
	l := decoded[list](r, "resources?format=json&page=3")
	if diff := cmp.Diff([]string{"c-199", "c-249"}, []string{l.names()[0], l.names()[50]}); diff != "" || l.Total != 251 {
		t.Error(diff)
	}
	page := r.html("resources?page=2&q=c-")
	for _, want := range []string{"101–200 of 250", "page=1&amp;q=c-", "page=3&amp;q=c-", "c-150"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if strings.Contains(page, "c-099") || strings.Contains(page, "c-200<") {
		t.Error("another page's resources are on the page")
	}
	for _, nonsense := range []string{"page=-1", "page=x", "page=99999999999999999999", "page=9999", "status=%3Cb%3E&q=%00%ff"} {
		r.html("resources?" + nonsense)
	}
	for _, beyond := range []string{"4", "9999", "9223372036854775807"} {
		if page := r.html("resources?page=" + beyond); !strings.Contains(page, "251–251 of 251") || !strings.Contains(page, "page=3") {
			t.Errorf("page %s does not lead back to the last one", beyond)
		}
	}
}

// A resource is shown with its text, and what is refused with the error.
func TestResource(t *testing.T) {
	r := newRig(t)
	st := r.watchAll(cds.Type, cluster("a"))
	broken := cluster("bad")
	broken.ConnectTimeout.Seconds = -1
	r.must(st.Send(testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a"), broken)))
	<-r.nacks
	page := r.html("resource?type=Cluster&name=a")
	for _, want := range []string{"ACKED", "&#34;connectTimeout&#34;: &#34;5s&#34;", "Secrets are redacted"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if got := decoded[row](r, "resource?type=Cluster&name=a&format=json"); got.Resource["name"] != "a" || got.Size == 0 {
		t.Errorf("%+v", got)
	}
	if page := r.html("resource?type=Cluster&name=bad"); !strings.Contains(page, "NACKED") || !strings.Contains(page, "holds no value") {
		t.Error("what was refused is not told")
	}
	if l := decoded[list](r, "resources?format=json&status=problem&contents=true"); len(l.Resources) != 1 || l.Resources[0].Error == nil || l.Resources[0].Resource != nil {
		t.Errorf("%+v", l)
	}
	if l := decoded[list](r, "resources?format=json&q=a&status=ACKED&contents=true"); l.Resources[0].Resource["name"] != "a" {
		t.Errorf("%+v", l)
	}
	if w := r.get("resource?type=Cluster&name=none"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "Not known") {
		t.Error(w.Code)
	}
	if page := r.html("exchanges"); !strings.Contains(page, "NACK") || !strings.Contains(page, "n2") {
		t.Error("the NACK is not among the exchanges")
	}
}

// Secrets are on no page.
// spec: H-3
func TestSecrets(t *testing.T) {
	const marker = "MARK3R"
	r := newRig(t)
	key := &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: marker}}
	secret := &tlsv3.Secret{Name: "s", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: key, PrivateKey: key}}}
	_, err := r.c.Watch(t.Context(), sds.Type, "s", func(client.Event[any]) {})
	r.must(err)
	st, err := r.srv.Accept(t.Context())
	r.must(err)
	r.must(st.Send(testutil.SotW(sds.Type.TypeURL(), "1", "n1", secret)))
	r.must(r.c.Ready(t.Context()))
	for _, page := range []string{"", "resources", "resource?type=Secret&name=s", "exchanges", "watches", "views"} {
		for _, format := range []string{"html", "json"} {
			q := "?"
			if strings.Contains(page, "?") {
				q = "&"
			}
			w := r.get(page + q + "contents=true&format=" + format)
			if w.Code != http.StatusOK || strings.Contains(w.Body.String(), marker) || strings.Contains(w.Body.String(), "TUFSSzNS") {
				t.Errorf("%s as %s: %d %s", page, format, w.Code, w.Body)
			}
		}
	}
	if !strings.Contains(r.html("resource?type=Secret&name=s"), "[redacted]") {
		t.Error("nothing is redacted")
	}
}

// What may be secret in the URI of a server is on no page, and a server is one, in use or not.
// spec: H-3
func TestSecretsOfServerURI(t *testing.T) {
	const marker = "MARK3R"
	servers := func(port string) []bootstrap.ManagementServer {
		return []bootstrap.ManagementServer{{URI: "dns:///127.0.0.1:" + port + "?token=" + marker, ChannelCreds: bootstrap.Insecure()}}
	}
	c, err := client.New(client.Config{Bootstrap: &bootstrap.Config{
		Servers: servers("1"), Authorities: map[string]bootstrap.Authority{"a": {Servers: servers("2")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Watch(t.Context(), cds.Type, "a", func(client.Event[any]) {}); err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, c: c, pages: http.StripPrefix("/debug", statuspage.New(c, statuspage.Config{}))}
	o := decoded[struct{ Servers []struct{ URI string } }](r, "?format=json")
	if len(o.Servers) != 2 || strings.Contains(fmt.Sprint(o)+r.html(""), marker) {
		t.Errorf("%+v\n%s", o, r.html(""))
	}
}

// Names of a server are shown as text, bounded, and can be followed; none is markup.
// spec: H-3
func TestHostileNames(t *testing.T) {
	r := newRig(t)
	names := []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `javascript:alert(1)`, "a\u202egnp.exe\x00\x1b[31m\nb", strings.Repeat("m", 1<<20), "..", "a b&c=d#e?f/%2e"}
	var all []proto.Message
	for _, name := range names {
		all = append(all, cluster(name))
	}
	r.watchAll(cds.Type, all...)
	for _, page := range []string{"", "resources", "exchanges", "watches"} {
		text := r.html(page)
		if len(text) > 100<<10 {
			t.Errorf("%s has %d bytes", page, len(text))
		}
		if harmful(text) {
			t.Errorf("%s has what cannot be seen, or a browser obeys", page)
		}
		if !utf8.ValidString(text) {
			t.Errorf("%s is not UTF-8", page)
		}
	}
	if l := decoded[list](r, "resources?format=json&type=Cluster"); len(l.Resources) != len(names)+1 {
		t.Error(l.names())
	}
	for _, rest := range strings.Split(r.html("resources"), `<a href="resource?`)[1:] {
		link := "resource?" + html.UnescapeString(rest[:strings.IndexByte(rest, '"')])
		w := r.get(link)
		if w.Code != http.StatusOK || w.Body.Len() > maxPage {
			t.Errorf("%s: %d, %d bytes", link, w.Code, w.Body.Len())
		}
		if harmful(w.Body.String()) {
			t.Errorf("%s has what cannot be seen", link)
		}
	}
}

// JSON has nothing that a terminal obeys or that turns the direction of text, and stands for the same names.
func TestJSONInTerminals(t *testing.T) {
	const odd = "a\u009b31m\u202egnp\u2066\x7f\U000e0041\u2028ñ"
	r := newRig(t)
	_, err := r.c.WatchAll(t.Context(), cds.Type, "*", func(client.Batch[any]) {})
	r.must(err)
	st, err := r.srv.Accept(t.Context())
	r.must(err)
	r.must(st.Send(testutil.SotW(cds.Type.TypeURL(), odd, odd, cluster(odd))))
	r.must(r.c.Ready(t.Context()))
	_, err = r.c.Watch(t.Context(), cds.Type, odd, func(client.Event[any]) {})
	r.must(err)
	one := "resource?type=Cluster&name=" + url.QueryEscape(odd)
	for page, names := range map[string]int{
		"?": 0, "resources?contents=true&": 3, one + "&": 2, "watches?": 1, "exchanges?": 2, "config_dump?": 2,
	} {
		w := r.get(page + "format=json")
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", page, w.Code)
		}
		if at := strings.IndexFunc(w.Body.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 {
			t.Errorf("%s has what a terminal may obey: %q", page, w.Body.String()[at:])
		}
		var v any
		r.must(json.Unmarshal(w.Body.Bytes(), &v))
		if got := strings.Count(fmt.Sprint(v), odd); got < names {
			t.Errorf("%s has %d texts of the server as they are, want %d", page, got, names)
		}
	}
}

// harmful is whether a page has what a server wrote for a browser to obey, or what turns the direction of text.
func harmful(page string) bool {
	return slices.ContainsFunc([]string{"<script>alert", "<img", "\u202e", "\x1b", "\x00", `href="javascript`}, func(bad string) bool {
		return strings.Contains(page, bad)
	})
}

// maxPage is what a page of one resource may have.
const maxPage = 400 << 10

// The recorder keeps the newest hundred exchanges, and little of each.
func TestRecorder(t *testing.T) {
	var rec statuspage.Recorder
	called := 0
	trace := rec.Trace(&client.Trace{Response: func(client.ResponseInfo) { called++ }})
	big, bad := strings.Repeat("v", 1<<20), "\xff\xfe<script>"
	for i := range 300 {
		s := client.StreamInfo{Server: "s", ID: uint64(i)}
		trace.StreamUp(s)
		trace.Request(client.RequestInfo{Stream: s, Type: "t", Size: 1})
		trace.Response(client.ResponseInfo{Stream: s, Type: big, Version: bad, Nonce: big, ControlPlane: big, Resources: 1})
		trace.ACK(client.AnswerInfo{Stream: s, Type: "t"})
		trace.NACK(client.AnswerInfo{Stream: s, Err: errors.New(big)})
		trace.StreamDown(s, errors.New(big))
	}
	r := newRig(t, func(c *statuspage.Config, _ *client.Client) { c.Recorder = &rec })
	w := r.get("exchanges?format=json")
	for _, page := range []string{"exchanges", ""} {
		if text := r.html(page); strings.Contains(text, "<script>") || !utf8.ValidString(text) || len(text) > 500<<10 {
			t.Errorf("%d bytes", len(text))
		}
	}
	type exchanges struct{ Exchanges []struct{ Kind string } }
	if got := decoded[exchanges](r, "exchanges?format=json"); len(got.Exchanges) != 100 || got.Exchanges[0].Kind != "stream down" || w.Body.Len() > 500<<10 || called != 300 {
		t.Errorf("%d exchanges, the newest %+v, in %d bytes; the next one was called %d times", len(got.Exchanges), got.Exchanges[0], w.Body.Len(), called)
	}
}

// Watches and views say what they wait for.
func TestWaiting(t *testing.T) {
	var views []*view.View
	r := newRig(t, func(c *statuspage.Config, cl *client.Client) {
		v, err := view.New(t.Context(), cl, view.Root{Type: view.RootCluster, Name: "root<b>"}, view.Config{})
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, v)
		c.Views = slices.Values(views)
	})
	set, err := r.c.NewSet(context.Background(), eds.Type, func(client.Batch[any]) {})
	r.must(err)
	r.must(set.Add("x", "y"))
	if page := r.html("views"); !strings.Contains(page, "waits for its first snapshot") || !strings.Contains(page, "root&lt;b&gt;") || !strings.Contains(page, "no answer yet") {
		t.Error(page)
	}
	type got struct {
		Views   []struct{ Root, Name, State string }
		Watches []struct {
			Kind, Type, Name string
			Names, Valueless int
		}
	}
	if v := decoded[got](r, "views?format=json").Views; len(v) != 1 || v[0].Root != "cluster" {
		t.Errorf("%+v", v)
	}
	ws := decoded[got](r, "watches?format=json&type=ClusterLoadAssignment").Watches
	if len(ws) != 1 || ws[0].Kind != "set" || ws[0].Names != 2 || ws[0].Valueless != 2 {
		t.Errorf("%+v", ws)
	}
	if page := r.html("watches?status=problem"); !strings.Contains(page, "waits for an answer") {
		t.Error(page)
	}
	views[0].Stop()
	<-views[0].Done()
	if page := r.html("views"); !strings.Contains(page, "ended") {
		t.Error(page)
	}
}

// Only GET and HEAD are answered, with headers that keep a browser from running or loading
// anything else.
func TestRequests(t *testing.T) {
	r := newRig(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if w := r.do(httptest.NewRequest(method, "/debug/", nil)); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if w := r.do(httptest.NewRequest("HEAD", "/debug/", nil)); w.Code != http.StatusOK {
		t.Error(w.Code)
	}
	for page, code := range map[string]int{"": 200, "style.css": 200, "live.js": 200, "live.html": 404, "base.html": 404, "nothing": 404, "config_dump": 200} {
		w := r.get(page)
		if w.Code != code || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", page, w.Code, w.Header())
		}
	}
	for _, bad := range []string{" style=", "<style", "<script>", " onclick", `="http`, `="//`} {
		if strings.Contains(r.html(""), bad) {
			t.Errorf("%q is on the page", bad)
		}
	}
	for _, page := range []string{"nothing?format=json", "resource?type=Cluster&name=none&format=json"} {
		var body struct{ Error string }
		w := r.get(page)
		err := json.Unmarshal(w.Body.Bytes(), &body)
		if w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/json" || err != nil || body.Error == "" {
			t.Errorf("%s: %d, %v: %s", page, w.Code, w.Header(), w.Body)
		}
	}
	req := httptest.NewRequest("GET", "/debug/resources", nil)
	req.Header.Set("Accept", "application/json")
	if w := r.do(req); w.Header().Get("Content-Type") != "application/json" {
		t.Error(w.Header())
	}
}

// A name that only resolves to the loopback address does not reach the page.
func TestHosts(t *testing.T) {
	r := newRig(t, func(c *statuspage.Config, _ *client.Client) { c.Hosts = []string{"Debug.example:8443"} })
	for _, c := range []struct {
		local, host string
		want        int
	}{
		{"127.0.0.1:80", "localhost:80", 200}, {"127.0.0.1:80", "127.0.0.1", 200}, {"[::1]:80", "[::1]:80", 200},
		{"127.0.0.1:80", "evil.example", 421}, {"[::1]:80", "localhost.evil.example:80", 421}, {"127.0.0.1:80", "", 421},
		{"127.0.0.1:80", "debug.example", 200}, {"10.0.0.1:80", "any.example", 200},
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.local)
		r.must(err)
		req := httptest.NewRequest("GET", "/debug/", nil)
		req.Host = c.host
		if w := r.do(req.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(addr)))); w.Code != c.want {
			t.Errorf("%s at %s: %d, want %d", c.host, c.local, w.Code, c.want)
		}
	}
}
