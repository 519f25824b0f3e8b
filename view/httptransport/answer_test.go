package httptransport_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"testing"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view/httptransport"
)

// A response that has no body by its status or its method has none, whatever the route says: a
// ReverseProxy cuts the connection if it cannot write one.
func TestBodiless(t *testing.T) {
	m := viewtest.Complete(t)
	viewtest.Set(t, m, "1", viewtest.Listener(t, `"*"`,
		`{match: {path: /200}, direct_response: {status: 200, body: {inline_string: body}}}`,
		`{match: {path: /204}, direct_response: {status: 204, body: {inline_string: body}}}`,
		`{match: {path: /304}, direct_response: {status: 304, body: {inline_string: body}}}`)...)
	c, _ := newTransport(t, m, httptransport.Config{})
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: c.Transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host
	}})
	defer proxy.Close()
	for _, tt := range []struct {
		method, path string
		status       int
		want         string
		length       int64
	}{
		{"GET", "/200", 200, "body", 4},
		{"HEAD", "/200", 200, "", 4},
		{"GET", "/204", 204, "", 0},
		{"HEAD", "/204", 204, "", 0},
		{"GET", "/304", 304, "", 0},
	} {
		for name, c := range map[string]*http.Client{"transport": c, "proxy": http.DefaultClient} {
			r, err := http.NewRequest(tt.method, proxy.URL+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(r)
			if err != nil {
				t.Errorf("%s: %s %s: %v", name, tt.method, tt.path, err)
				continue
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != tt.status || string(got) != tt.want || name == "transport" && resp.ContentLength != tt.length {
				t.Errorf("%s: %s %s: %d %q of length %d, %v; want %d %q of length %d", name, tt.method, tt.path, resp.StatusCode, got, resp.ContentLength, err, tt.status, tt.want, tt.length)
			}
		}
	}
}
