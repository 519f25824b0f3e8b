package grpcrules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/testutil"
)

// judge is a gRPC channel whose management server is the test.
type judge struct {
	t        *testing.T
	server   *testutil.Server
	stream   *testutil.Stream
	requests map[string]chan *discoveryv3.DiscoveryRequest // by type URL
	nonce    int
	good     map[string]proto.Message // by type URL, what the channel needs
}

// patience is how long an answer of gRPC may take.
const patience = 20 * time.Second

// newJudge makes a channel and gives it the good resources, so that it subscribes to each type.
func newJudge(t *testing.T, good ...proto.Message) *judge {
	t.Helper()
	j := &judge{t: t, requests: map[string]chan *discoveryv3.DiscoveryRequest{}, good: map[string]proto.Message{}}
	for _, m := range good {
		j.good[urlOf(m)] = m
		j.requests[urlOf(m)] = make(chan *discoveryv3.DiscoveryRequest, 100)
	}
	streams := make(chan *testutil.Stream, 10)
	var err error
	j.server, err = testutil.ListenServer("127.0.0.1:0", testutil.Unrecorded(), testutil.OnStream(func(st *testutil.Stream) { streams <- st }), testutil.OnRequest(func(_ *testutil.Stream, r *testutil.Request) {
		if r.SotW != nil && j.requests[r.SotW.GetTypeUrl()] != nil {
			j.requests[r.SotW.GetTypeUrl()] <- r.SotW
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.server.Close)
	resolver, err := xds.NewXDSResolverWithConfigForTesting([]byte(fmt.Sprintf(`{
		"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": "judge"},
		"certificate_providers": {"there": {"plugin_name": "file_watcher", "config": {"certificate_file": "/a", "private_key_file": "/b", "ca_certificate_file": "/c"}}}
	}`, j.server.Target())))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///"+channelName, grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.Connect()
	j.stream = <-streams
	for _, m := range good {
		<-j.requests[urlOf(m)]
		if verdict := j.send(urlOf(m), m); verdict != "" {
			t.Fatalf("gRPC refuses %s: %s", urlOf(m), verdict)
		}
	}
	return j
}

func urlOf(m proto.Message) string {
	return "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())
}

// send sends resources of a type and waits for the answer: "" is an ACK, and else the text of the NACK.
func (j *judge) send(typeURL string, ms ...proto.Message) string {
	j.t.Helper()
	j.nonce++
	nonce := fmt.Sprint(j.nonce)
	resp := &discoveryv3.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: nonce, Nonce: nonce}
	for _, m := range ms {
		b, err := proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(m)
		if err != nil {
			j.t.Fatal(err)
		}
		resp.Resources = append(resp.Resources, &anypb.Any{TypeUrl: typeURL, Value: b})
	}
	if err := j.stream.Send(resp); err != nil {
		j.t.Fatal(err)
	}
	late := time.After(patience)
	for {
		select {
		case r := <-j.requests[typeURL]:
			if r.GetResponseNonce() == nonce {
				return r.GetErrorDetail().GetMessage()
			}
		case <-late:
			j.t.Fatalf("no answer of gRPC to %s", typeURL)
		}
	}
}

// judge says whether gRPC accepts a resource: "" or why not. The resource stands beside the good one.
func (j *judge) judge(m proto.Message) string {
	j.t.Helper()
	return strings.ReplaceAll(j.send(urlOf(m), j.good[urlOf(m)], m), "\u00a0", " ")
}
