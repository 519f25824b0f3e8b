// Proxy is an HTTP reverse proxy that has its listener, routes, clusters and endpoints from a
// management server. Pushes cost no request: each is routed and sent by one consistent snapshot
// (package view), and its cluster is held until the response is over. A cluster that a request names
// (cluster_header) is looked up on demand, max_requests limits requests, and load is reported.
//
//	go run ./examples/proxy bootstrap.json LISTENER 127.0.0.1:8080
package main

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/load"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: proxy BOOTSTRAP LISTENER ADDRESS")
	}
	log.Fatal(run(os.Args[1], os.Args[2], os.Args[3]))
}

func run(bootstrapFile, listener, address string) error {
	boot, err := bootstrap.Load(bootstrapFile)
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Bootstrap: boot, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer c.Close()
	loads := load.New(c, load.Config{Logger: slog.Default()})
	defer loads.Close()
	p, err := newProxy(context.Background(), c, loads, listener)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.view.Ready(ctx); err != nil {
		return err // it lists what is missing
	}
	return (&http.Server{Addr: address, Handler: p, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe()
}
