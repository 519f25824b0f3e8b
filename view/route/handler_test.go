package route_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/xdswatch/xdswatch/view/route"
)

// A handler answers by itself what is not to be forwarded, and routes what it admits as it is normalized.
func TestHandler(t *testing.T) {
	table := good(t, `{virtual_hosts: [{name: v, domains: ["127.0.0.1"], routes: [
		{match: {path: /moved}, redirect: {path_redirect: /here, response_code: FOUND}},
		{match: {path: /said}, direct_response: {status: 418, body: {inline_string: tea}}},
		{match: {path: /nothing}, non_forwarding_action: {}},
		{match: {prefix: /}, route: {cluster: a}}]}]}`)
	normal := route.Normalization{Path: true, StripMatchingPort: true, EscapedSlashes: route.RedirectSlashes}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, ok := normal.Admit(w, r)
		if !ok {
			return
		}
		found, err := table.Match(&req)
		if err != nil {
			t.Error(err)
			return
		}
		if !found.Answer(w, r, &req) {
			fmt.Fprint(w, "forwarded ", req.Host, req.Path)
		}
	}))
	defer server.Close()
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for path, want := range map[string]string{
		"/a/../b":  "200 forwarded 127.0.0.1/b",
		"/%00":     "400 the request's path is refused\n",
		"/a%2fb?c": "307 " + server.URL + "/a/b?c",
		"/moved":   "302 http://127.0.0.1/here",
		"/said":    "418 tea",
		"/nothing": "404 the route forwards nothing\n",
	} {
		resp, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if to := resp.Header.Get("Location"); to != "" {
			body = []byte(to)
		}
		if got := fmt.Sprintf("%d %s", resp.StatusCode, body); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
