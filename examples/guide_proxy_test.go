package examples_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/httptransport"
)

// newProxy makes a reverse proxy that follows a listener: each request goes to an endpoint of the
// cluster that the routes choose. It returns when the first configuration is whole, within a minute.
func newProxy(ctx context.Context, c *client.Client, listener string) (http.Handler, error) {
	v, err := view.New(ctx, c, view.Root{Type: view.RootListener, Name: listener}, view.Config{})
	if err != nil {
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := v.Ready(ready); err != nil {
		v.Stop()
		return nil, err // it lists what is missing: the listener, if its name is wrong
	}
	return &httputil.ReverseProxy{
		Transport: httptransport.New(v, httptransport.Config{}),
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Host = r.In.Host; r.SetXForwarded() },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			slog.Warn("request failed", "host", r.Host, "path", r.URL.Path, "error", err) // it says why
			status := http.StatusBadGateway
			if e, ok := errors.AsType[*httptransport.Error](err); ok {
				status = e.Status // 404 without a route, 503 without an endpoint
			}
			http.Error(w, http.StatusText(status), status)
		},
	}, nil
}

func Example_proxy() {
	blue, blueAddress := website("blue")
	defer blue.Close()
	green, greenAddress := website("green")
	defer green.Close()
	clusters := append(clustered("blue", blueAddress), clustered("green", greenAddress)...)
	m := manage(slices.Concat(routed("blue"), clusters)...)
	defer m.Stop()
	c := connect(m)
	defer c.Close()

	front := httptest.NewServer(must(newProxy(ctx, c, "ingress")))
	defer front.Close()
	get := func() string {
		resp := must(http.Get(front.URL))
		defer resp.Body.Close()
		return string(must(io.ReadAll(resp.Body)))
	}
	fmt.Println(get())
	check(m.Set("2", slices.Concat(routed("green"), clusters)...))
	for get() != "green" {
	}
	fmt.Println(get())
	// Output:
	// blue
	// green
}
