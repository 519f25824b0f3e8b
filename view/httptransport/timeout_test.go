package httptransport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/httptransport"
)

// Over HTTP/2 a route's timeout is the error of a timeout too, before the response and in its body, and not that
// of a client that has gone.
func TestTimeoutOverHTTP2(t *testing.T) {
	t.Parallel()
	m := viewtest.Management(t)
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	alone := new(http.Protocols)
	alone.SetUnencryptedHTTP2(true)
	backend.Config.Protocols = alone
	backend.Start()
	t.Cleanup(backend.Close)
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`, `{match: {prefix: /}, route: {cluster: a, timeout: 0.05s}}`),
		viewtest.Cluster("a"), viewtest.Assignment("a", viewtest.At(uint32(backend.Listener.Addr().(*net.TCPAddr).Port))))...)
	c, _ := newTransport(t, m, httptransport.Config{Base: func(*view.Cluster) (*http.Transport, error) {
		return &http.Transport{Protocols: alone}, nil
	}})
	for _, path := range []string{"/", "/body"} {
		for _, body := range []string{"", "body"} {
			resp, err := c.Post("http://example.com"+path, "text/plain", strings.NewReader(body))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: the request with body %q ended with %v", path, body, err)
			}
		}
	}
}
