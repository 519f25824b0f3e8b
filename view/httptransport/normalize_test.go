package httptransport_test

import (
	"errors"
	"testing"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view/httptransport"
)

// Requests are routed and sent as the listener's HttpConnectionManager makes them.
func TestNormalization(t *testing.T) {
	m, a := viewtest.Management(t), newBackend(t, "a")
	viewtest.Set(t, m, "1", append(viewtest.Managed(t, viewtest.Listener(t, "example.com",
		`{match: {prefix: /private}, direct_response: {status: 403}}`,
		`{match: {prefix: /moved}, route: {cluster: a, prefix_rewrite: /new}}`,
		`{match: {prefix: /}, route: {cluster: a}}`),
		func(hcm *hcmv3.HttpConnectionManager) {
			hcm.NormalizePath = wrapperspb.Bool(true)
			hcm.MergeSlashes = true
			hcm.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_UNESCAPE_AND_REDIRECT
			hcm.StripPortMode = &hcmv3.HttpConnectionManager_StripAnyHostPort{StripAnyHostPort: true}
			hcm.StripTrailingHostDot = true
		}), viewtest.Cluster("a"), viewtest.Assignment("a", viewtest.At(a.port)))...)
	c, _ := newTransport(t, m, httptransport.Config{})
	for _, tt := range []struct {
		url    string
		status int
		text   string
	}{
		{"http://example.com/public/x", 200, "a example.com /public/x"},
		{"http://example.com./public/x", 200, "a example.com /public/x"},
		{"http://example.com:8080/public//x/./y", 200, "a example.com /public/x/y"},
		{"http://example.com/public/%78%2E%c3%a9", 200, "a example.com /public/x.%c3%a9"},
		{"http://example.com/x/../moved//y", 200, "a example.com /new/y"},
		{"http://example.com", 200, "a example.com /"},
		{"http://example.com/public/../private", 403, ""},
		{"http://example.com//private/x", 403, ""},
		{"http://example.com/%70rivate", 403, ""},
		{"http://example.com/public/%2e%2e/private", 403, ""},
		{"http://example.com/public/..%2Fprivate?q=%2F", 307, "http://example.com/private?q=%2F"},
	} {
		if status, text, err := get(c, tt.url); status != tt.status || text != tt.text || err != nil {
			t.Errorf("%s: %d %q, %v; want %d %q", tt.url, status, text, err, tt.status, tt.text)
		}
	}
	_, _, err := get(c, "http://example.com/%00")
	if e, ok := errors.AsType[*httptransport.Error](err); !ok || e.Status != 400 {
		t.Errorf("a path with NUL: %v", err)
	}
}
