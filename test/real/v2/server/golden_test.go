package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	api "github.com/envoyproxy/go-control-plane/envoy/api/v2"
	core "github.com/envoyproxy/go-control-plane/envoy/api/v2/core"
	route "github.com/envoyproxy/go-control-plane/envoy/api/v2/route"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

var update = flag.Bool("update", false, "write the golden files anew")

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The messages of version 2 that the client's tests read and expect are those that the
// generated code of the time writes.
func TestGolden(t *testing.T) {
	cluster := &api.Cluster{Name: "a", ConnectTimeout: durationpb.New(1)}
	host := &route.VirtualHost{Name: "h"}
	golden := map[string]proto.Message{
		"sotw-response": &api.DiscoveryResponse{
			VersionInfo: "1", TypeUrl: "type.googleapis.com/envoy.api.v2.Cluster", Nonce: "n",
			Resources:    []*anypb.Any{packed(t, cluster)},
			ControlPlane: &core.ControlPlane{Identifier: "old"},
		},
		"delta-response": &api.DeltaDiscoveryResponse{
			SystemVersionInfo: "1", TypeUrl: "type.googleapis.com/envoy.api.v2.route.VirtualHost", Nonce: "n",
			Resources:        []*api.Resource{{Name: "r/h", Version: "3", Aliases: []string{"r/x"}, Resource: packed(t, host)}},
			RemovedResources: []string{"r/gone"},
		},
		"sotw-request": &api.DiscoveryRequest{
			VersionInfo: "1", TypeUrl: "type.googleapis.com/envoy.api.v2.auth.Secret", ResponseNonce: "n",
			Node: &core.Node{
				Id: "i", BuildVersion: "xdswatch/0.1.0", UserAgentName: "xdswatch",
				UserAgentVersionType: &core.Node_UserAgentVersion{UserAgentVersion: "0.1.0"},
			},
			ResourceNames: []string{"a", "b"}, ErrorDetail: &status.Status{Code: 3, Message: "bad"},
		},
		"delta-request": &api.DeltaDiscoveryRequest{
			Node: &core.Node{Id: "i"}, TypeUrl: "type.googleapis.com/envoy.service.discovery.v2.Runtime",
			ResourceNamesSubscribe: []string{"a"}, ResourceNamesUnsubscribe: []string{"b"},
			InitialResourceVersions: map[string]string{"c": "4"},
		},
	}
	for name, m := range golden {
		path := filepath.Join("..", "..", "..", "..", "internal", "apiv2", "testdata", name+".binpb")
		got, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			err = os.WriteFile(path, got, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: got %x, the file has %x", name, got, want)
		}
	}
}
