package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/server/rest/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// clusterGateway serves Clusters over HTTP. It stands for the gateway of go-control-plane's server
// package, which needs the module of the rate limit service; what answers is the same.
func clusterGateway(s rest.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req := &discoveryv3.DiscoveryRequest{}
		if err = errors.Join(err, protojson.Unmarshal(body, req)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		req.TypeUrl = cds.Type.TypeURL()
		res, err := s.Fetch(r.Context(), req)
		var unchanged *types.SkipFetchError
		switch {
		case errors.As(err, &unchanged):
			w.WriteHeader(http.StatusNotModified)
			return
		case err == nil:
			body, err = protojson.Marshal(res)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(body) // who does not read it polls again
	})
}

// A poll stands for itself, so it asks for everything without names, whatever is watched by name
// besides, or was: go-control-plane's server takes a `*` for the name of a resource.
// spec: WILD-1 S-21
func TestRealServerPolledWildcard(t *testing.T) {
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	must(t, srv.Set("1", cluster("a", "one"), cluster("b", "one")))
	gateway := httptest.NewServer(clusterGateway(rest.NewServer(srv.Cache(), nil)))
	defer gateway.Close()
	boot, err := bootstrap.Server("gateway")
	must(t, err)
	boot.Servers[0].PerType = true
	boot.Servers[0].Carrier = &bootstrap.REST{
		RefreshDelay: 10 * time.Millisecond,
		Endpoints:    []bootstrap.RESTEndpoint{{Address: strings.TrimPrefix(gateway.URL, "http://")}},
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	must(t, err)
	defer func() {
		c.Close()
		<-c.Done()
		noLeak(t)
	}()
	one, all := make(chan client.Event[any], 10), make(chan client.Event[any], 10)
	a, err := c.Watch(context.Background(), cds.Type, "a", func(ev client.Event[any]) { one <- ev })
	must(t, err)
	await(t, one, "updated a one")
	_, err = c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
		for _, ev := range b.Events {
			if ev.Kind == client.EventDoesNotExist {
				t.Errorf("%q is told not to exist", ev.Name)
			}
			all <- ev
		}
	})
	must(t, err)
	await(t, all, "updated b one")
	must(t, srv.Set("2", cluster("a", "two"), cluster("b", "one")))
	await(t, one, "updated a two")
	await(t, all, "updated a two")
	a.Stop()
	must(t, srv.Set("3", cluster("a", "three"), cluster("b", "one")))
	await(t, all, "updated a three")
}
