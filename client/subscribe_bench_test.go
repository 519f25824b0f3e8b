package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// nameSize is the length of each name that is subscribed to: that which a request asks for ends it.
const nameSize = 26

// oneByOne is the transport, the connection and the stream to a server in the process, which answers
// each request whose last name is new with that name's resource.
type oneByOne struct {
	answered  string
	version   int
	responses chan []byte
}

func (s *oneByOne) Build(bootstrap.ManagementServer) (transport.Conn, error) { return s, nil }

func (s *oneByOne) Open(ctx context.Context, _ string) (transport.Stream, error) {
	return openOne{s, ctx}, nil
}

func (s *oneByOne) Close() error { return nil }

type openOne struct {
	*oneByOne
	ctx context.Context
}

func (openOne) Close() {}

func (s openOne) Send(msg ...[]byte) error {
	last := msg[len(msg)-1]
	name := string(last[max(0, len(last)-nameSize):])
	if !strings.HasPrefix(name, "name-") || name == s.answered {
		return nil
	}
	s.answered = name
	s.version++
	s.responses <- assignmentResponse(name, fmt.Sprint(s.version))
	return nil
}

func (s openOne) Recv() (transport.Frame, error) {
	select {
	case b := <-s.responses:
		return transport.Frame{Parts: [][]byte{b}}, nil
	case <-s.ctx.Done():
		return transport.Frame{}, s.ctx.Err()
	}
}

// assignmentResponse is a response with ten endpoints.
func assignmentResponse(name, version string) []byte {
	var addresses []string
	for i := range 10 {
		addresses = append(addresses, fmt.Sprintf("10.0.0.1:%d", i+1))
	}
	r, err := anypb.New(testutil.Endpoints(name, addresses...))
	if err != nil {
		panic(err)
	}
	b, err := proto.Marshal(&discoveryv3.DiscoveryResponse{VersionInfo: version, Nonce: version, TypeUrl: r.TypeUrl, Resources: []*anypb.Any{r}})
	if err != nil {
		panic(err)
	}
	return b
}

// BenchmarkOneByOne subscribes to one name more of a few thousand, and waits for its resource.
func BenchmarkOneByOne(b *testing.B) {
	srv := &oneByOne{responses: make(chan []byte, 1)}
	boot, err := bootstrap.Server("passthrough:///x")
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot, Transport: srv})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	heard := make(chan struct{}, 1)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		name := fmt.Sprintf("name-%09d.example.com", i)
		i++
		_, err := c.Watch(b.Context(), eds.Type, name, func(ev client.Event[any]) {
			if ev.Kind == client.EventUpdated {
				heard <- struct{}{}
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		<-heard
	}
}
