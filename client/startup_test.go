package client_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
)

const clustersFile = `{"version_info":"1","resources":[
	{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"a"},
	{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"b"}]}`

func fileOfClusters(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cds.json")
	must(t, os.WriteFile(path, []byte(clustersFile), 0o600))
	return path
}

func untilDone(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A file can stand behind a server that cannot be reached.
//
// spec: FALLBACK-1 FILE-3 CFG-1
func TestFileBehindServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	dead := l.Addr().String()
	must(t, l.Close())
	path := fileOfClusters(t)
	c, err := client.New(client.Config{Bootstrap: &bootstrap.Config{Servers: []bootstrap.ManagementServer{
		{URI: dead, ChannelCreds: bootstrap.Insecure()},
		{URI: "file://" + path, Carrier: &bootstrap.File{Path: path}},
	}}})
	must(t, err)
	defer c.Close()
	ev, err := c.Get(untilDone(t), cds.Type, "a")
	must(t, err)
	if ev.Server != "file://"+path || ev.Value == nil {
		t.Errorf("the value is of %q", ev.Server)
	}
}

// What an Envoy bootstrap takes from a file is watched like everything else that it asks
// for.
//
// spec: BOOTE-1 BOOTE-2 CFG-1 FILE-3
func TestStartupOfFile(t *testing.T) {
	boot, err := bootstrap.Parse("envoy", []byte(`{"node":{"id":"a","cluster":"b"},"dynamic_resources":{"cds_config":{"path_config_source":{"path":"`+fileOfClusters(t)+`"}}}}`))
	must(t, err)
	c, err := client.New(client.Config{Bootstrap: boot})
	must(t, err)
	defer c.Close()
	synced := make(chan []string, 1)
	for _, s := range boot.Startup {
		var names []string
		_, err := c.WatchAll(t.Context(), cds.Type, s.Collection, func(b client.Batch[any]) {
			for ev := range b.Changed() {
				names = append(names, ev.Name)
			}
			if b.Synced() {
				synced <- names
			}
		}, client.AtStartup(s))
		must(t, err)
	}
	select {
	case names := <-synced:
		same(t, "clusters", names, []string{"a", "b"})
	case <-untilDone(t).Done():
		t.Fatal("the file was not read")
	}
}

// Whoever asks for names that the bootstrap has no servers for is told what else there is.
func TestNoServersSaysWhatThereIs(t *testing.T) {
	path := fileOfClusters(t)
	c, err := client.New(client.Config{Bootstrap: &bootstrap.Config{Startup: []bootstrap.Subscription{{
		TypeURL: cds.Type.TypeURL(), Collection: "*", Source: &bootstrap.Source{
			Servers: []bootstrap.ManagementServer{{URI: "file://" + path, Carrier: &bootstrap.File{Path: path}}},
		},
	}}}})
	must(t, err)
	defer c.Close()
	_, err = c.WatchAll(t.Context(), cds.Type, "*", func(client.Batch[any]) {})
	if want := "(AtStartup), and a watch may bring one along (FromSource)"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("Clusters: %v, want %q at its end", err, want)
	}
	_, err = c.Watch(t.Context(), lds.Type, "a", func(client.Event[any]) {})
	if want := "; a watch may bring a source along (FromSource)"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("a Listener: %v, want %q at its end", err, want)
	}
}

// Collections, and what else has their authority, come over the stream of ads_config, whichever way the bootstrap
// says so.
//
// spec: AUTH-1 CFG-3 BOOTE-2 CTX-2
func TestCollectionsOfADS(t *testing.T) {
	const (
		clusters = "xdstp://a/envoy.config.cluster.v3.Cluster/x/*"
		params   = "?xds.node.cluster=c&xds.node.id=i"
		one      = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/x/1"
	)
	for _, source := range []string{`{"ads":{}}`, `{"api_config_source":{"api_type":"AGGREGATED_DELTA_GRPC","transport_api_version":"V3"}}`} {
		var own *bootstrap.Config
		inBubble(t, func(t *testing.T, r *rig) {
			s := own.Startup[0]
			_, err := r.c.WatchAll(t.Context(), cds.Type, s.Collection, func(client.Batch[any]) {}, client.AtStartup(s))
			must(t, err)
			st := r.accept()
			r.request(st, "cds ["+clusters+params+"]")
			r.watchType(eds.Type, one)
			r.request(st, "eds ["+one+"]")
		}, func(c *client.Config) {
			var err error
			own, err = bootstrap.Parse("envoy", []byte(`{"node":{"id":"i","cluster":"c"},"node_context_params":["id","cluster"],`+
				`"dynamic_resources":{"cds_resources_locator":"`+clusters+`","cds_config":`+source+`,"ads_config":{"api_type":"DELTA_GRPC",`+
				`"grpc_services":[{"google_grpc":{"target_uri":"`+c.Bootstrap.Servers[0].URI+`"}}]}}}`))
			must(t, err)
			c.Bootstrap = own
		})
	}
}
