package httptransport_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httputil"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/httptransport"
)

// A reverse proxy: the transport finds the endpoint of each request.
func Example() {
	boot, err := bootstrap.Load("bootstrap.json")
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	v, err := view.New(context.Background(), c, view.Root{Type: view.RootListener, Name: "ingress"}, view.Config{})
	if err != nil {
		log.Fatal(err)
	}
	t := httptransport.New(v, httptransport.Config{})
	defer t.Close()
	proxy := &httputil.ReverseProxy{
		Transport: t,
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Host = r.In.Host; r.SetXForwarded() },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			status := http.StatusBadGateway
			if e, ok := errors.AsType[*httptransport.Error](err); ok {
				status = e.Status
			}
			http.Error(w, err.Error(), status)
		},
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", proxy))
}
