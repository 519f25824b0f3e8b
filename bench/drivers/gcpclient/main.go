// Command gcpclient drives go-control-plane's pkg/client/sotw/v3. That client is a stream
// with Fetch, Ack and Nack: it has no resource names, so that it can only subscribe to
// everything, no watchers, no cache, no comparison and no reconnect. What is missing is
// here the least that a user of it must write: a loop that unmarshals every resource of
// every response.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	sotw "github.com/envoyproxy/go-control-plane/pkg/client/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/bench/kit"
)

func main() { kit.Main("gcpclient", missing, start) }

func missing(c *kit.Config) string {
	switch {
	case c.Variant != "sotw":
		return "the client has no delta"
	case c.Work == kit.Fanout:
		return "the client has no watchers"
	case c.Work == kit.Incr, c.Work == kit.Cancel:
		return "the client cannot name resources"
	}
	return ""
}

func start(e *kit.Env) (kit.Client, error) {
	creds := insecure.NewCredentials()
	if t := e.ClientTLS(); t != nil {
		creds = credentials.NewTLS(t)
	}
	cc, err := grpc.NewClient("passthrough:///"+e.Addr, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return nil, err
	}
	return &client{e, cc, sotw.NewADSClient(context.Background(), &corev3.Node{Id: "bench"}, e.TypeURL())}, nil
}

type client struct {
	e  *kit.Env
	cc *grpc.ClientConn
	c  sotw.ADSClient
}

func (c *client) Watch(string, int) error { return errors.ErrUnsupported }
func (c *client) Cancel(string) error     { return errors.ErrUnsupported }
func (c *client) Close()                  { _ = c.cc.Close() }

func (c *client) Subscribe([]string) error {
	if err := c.c.InitConnect(c.cc, grpc.WaitForReady(true)); err != nil {
		return err
	}
	go func() { fmt.Fprintln(os.Stderr, c.run()) }()
	return nil
}

// run opens the stream anew when it ends.
func (c *client) run() error {
	for {
		if err := c.receive(); !sotw.IsConnError(err) {
			return err
		}
		if err := c.c.InitConnect(c.cc, grpc.WaitForReady(true)); err != nil {
			return err
		}
	}
}

func (c *client) receive() error {
	for {
		r, err := c.c.Fetch()
		if err != nil {
			return err
		}
		for _, a := range r.Resources {
			if err := c.deliver(a); err != nil {
				return err
			}
		}
		if err := c.c.Ack(); err != nil {
			return err
		}
	}
}

func (c *client) deliver(a *anypb.Any) error {
	if c.e.Type == kit.EDSType {
		m := &endpointv3.ClusterLoadAssignment{}
		if err := a.UnmarshalTo(m); err != nil {
			return err
		}
		c.e.Deliver(m.ClusterName, 0, m.Endpoints[0].LbEndpoints[0].GetEndpoint().Hostname)
		return nil
	}
	m := &clusterv3.Cluster{}
	if err := a.UnmarshalTo(m); err != nil {
		return err
	}
	c.e.Deliver(m.Name, 0, m.AltStatName)
	return nil
}
