package httptransport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/httptransport"
)

// A reverse proxy: the transport finds the endpoint of each request.
func Example() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from the backend of %s", r.URL.Path)
	}))
	defer backend.Close()
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set("1",
		testutil.ProxyListener("ingress", "0.0.0.0:80", "shop"),
		testutil.RouteConfig("shop", testutil.VirtualHost("*", testutil.Route("/orders", "orders"))),
		testutil.EDSCluster("orders"),
		testutil.Endpoints("orders", backend.Listener.Addr().String()),
	); err != nil {
		log.Fatal(err)
	}

	c, err := client.New(client.Config{Bootstrap: server.Bootstrap()}) // a program uses bootstrap.Load
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	v, err := view.New(ctx, c, view.Root{Type: view.RootListener, Name: "ingress"}, view.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Stop()
	if err := v.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	t := httptransport.New(v, httptransport.Config{})
	defer t.Close()
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: t,
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Host = r.In.Host; r.SetXForwarded() },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			status := http.StatusBadGateway
			if e, ok := errors.AsType[*httptransport.Error](err); ok {
				status = e.Status
			}
			w.WriteHeader(status)
		},
	})
	defer proxy.Close()

	for _, path := range []string{"/orders/1", "/other"} {
		resp, err := http.Get(proxy.URL + path)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(resp.StatusCode, string(body), err)
	}
	// Output:
	// 200 hello from the backend of /orders/1 <nil>
	// 404  <nil>
}
