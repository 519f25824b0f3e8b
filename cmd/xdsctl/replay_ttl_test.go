package main

import (
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const brief = `version_info: "7"
type_url: type.googleapis.com/envoy.config.cluster.v3.Cluster
resources:
- "@type": type.googleapis.com/envoy.service.discovery.v3.Resource
  name: brief
  ttl: 2s
  resource: {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: brief}
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: lasting}
`

// Times to live are served and kept alive by heartbeats, of files and of what was recorded of them, in
// both variants.
// spec: TTL-1, TTL-3
func TestReplayTTL(t *testing.T) {
	if testing.Short() {
		t.Skip("long: seconds to live")
	}
	t.Parallel()
	path := file(t, "brief.yaml", brief)
	for _, variant := range []string{"sotw", "delta"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			from := path
			for _, of := range []string{"files", "a recording"} {
				_, address := startReplay(t, "--speed", "0", from)
				from = filepath.Join(t.TempDir(), "r.jsonl")
				frames, stop := startRecord(t, from, "--server", address, "--variant", variant, "cds")
				until(t, "heartbeats", func() bool { return responses(frames(), clusters) >= 3 })
				stop()
				nonces := map[string]bool{}
				for _, f := range frames() {
					text := strings.ReplaceAll(string(f.Message), " ", "")
					if strings.Contains(text, "errorDetail") || strings.Contains(text, "does-not-exist") {
						t.Errorf("%s of %s: refused: %s", variant, of, text)
					}
					if f.Direction != "response" {
						continue
					}
					_, nonce, _ := strings.Cut(text, `"nonce":"`)
					nonce, _, _ = strings.Cut(nonce, `"`)
					first := len(nonces) == 0
					if nonces[nonce] || nonce == "" {
						t.Errorf("%s of %s: the nonce %q again", variant, of, nonce)
					}
					nonces[nonce] = true
					if !strings.Contains(text, `"ttl":"2s"`) || strings.Contains(text, `"resource":{`) != first || strings.Contains(text, "lasting") != first {
						t.Errorf("%s of %s: response %d is %s", variant, of, len(nonces), text)
					}
				}
			}
		})
	}
}

// A client that does not say that it knows times to live is sent none, and so no wrapper.
func TestReplayTTLUnknown(t *testing.T) {
	t.Parallel()
	_, address := startReplay(t, file(t, "brief.yaml", brief))
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: clusters, Node: &corev3.Node{Id: "me"}}); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.GetResources()) != 2 {
		t.Errorf("%v", resp)
	}
	for _, a := range resp.GetResources() {
		if a.GetTypeUrl() != clusters {
			t.Errorf("sent as %s", a.GetTypeUrl())
		}
	}
}
