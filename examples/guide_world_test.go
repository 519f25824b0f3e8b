package examples_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

var ctx = context.Background()

// must is for what does not fail here.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// manage starts a management server, which has version 1 of the resources.
func manage(resources ...proto.Message) *testutil.ManagementServer {
	m := must(testutil.NewManagementServer(testutil.ManagementConfig{}))
	check(m.Set("1", resources...))
	return m
}

// newClient makes a client by a bootstrap of gRPC or of Envoy. It connects when the first watch needs
// it, and the program closes it at its end.
func newClient(bootstrapFile string) (*client.Client, error) {
	boot, err := bootstrap.Load(bootstrapFile)
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{Bootstrap: boot, Logger: slog.Default()})
}

// connect makes a client of a management server.
func connect(m *testutil.ManagementServer) *client.Client {
	f := must(os.CreateTemp("", "bootstrap*.json"))
	defer os.Remove(f.Name())
	fmt.Fprintf(f, `{"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}]}]}`, m.Addr())
	check(f.Close())
	return must(newClient(f.Name()))
}

// resources reads YAML as Envoy does.
func resources(text string, args ...any) (all []proto.Message) {
	text = fmt.Sprintf(text, args...)
	for document := range strings.SplitSeq(text, "\n---\n") {
		var packed anypb.Any
		check(protojson.Unmarshal(must(yaml.YAMLToJSON([]byte(document))), &packed))
		all = append(all, must(packed.UnmarshalNew()))
	}
	return all
}

// routed is a configuration that leads all requests to one cluster.
func routed(cluster string) []proto.Message {
	return []proto.Message{
		testutil.APIListener("ingress", "routes"),
		testutil.RouteConfig("routes", testutil.VirtualHost("*", testutil.Route("/", cluster))),
	}
}

// clustered is a cluster with one endpoint.
func clustered(name, address string) []proto.Message {
	return []proto.Message{testutil.EDSCluster(name), testutil.Endpoints(name, address)}
}

// website is an HTTP server that answers with its name.
func website(name string) (server *httptest.Server, address string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
	return s, s.Listener.Addr().String()
}
