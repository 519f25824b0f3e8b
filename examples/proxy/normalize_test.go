package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/internal/viewtest"
)

// What a route keeps away is not reached by another spelling of its path, if the listener says so.
func TestNormalization(t *testing.T) {
	ctx, m := viewtest.Patience(t), viewtest.Management(t)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Seen", fmt.Sprint(r.Host, " ", r.URL.EscapedPath()))
	}))
	defer backend.Close()
	at := viewtest.At(uint32(backend.Listener.Addr().(*net.TCPAddr).Port))
	viewtest.Set(t, m, "1", append(viewtest.Managed(t, viewtest.Listener(t, `"127.0.0.1"`,
		`{match: {prefix: /private}, direct_response: {status: 403}}`, `{match: {prefix: /}, route: {cluster: a}}`),
		func(hcm *hcmv3.HttpConnectionManager) {
			hcm.NormalizePath = wrapperspb.Bool(true)
			hcm.MergeSlashes = true
			hcm.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_UNESCAPE_AND_REDIRECT
			hcm.StripMatchingHostPort = true // else the port of the proxy would match no domain
		}), viewtest.Cluster("a"), viewtest.Assignment("a", at))...)
	_, front := serve(t, viewtest.Client(t, m), nil)
	client := front.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for path, want := range map[string]string{
		"/public//./x":           "200 127.0.0.1 /public/x",
		"/public/../private":     "403 ",
		"//private":              "403 ",
		"/%70rivate":             "403 ",
		"/public/%2e%2E/private": "403 ",
		"/public/..%2fprivate?q": "307 " + front.URL + "/private?q",
		"/%2Fevil.example":       "307 " + front.URL + "/evil.example",
		"/public/%00":            "400 ",
	} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Seen"), resp.Header.Get("Location")); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
