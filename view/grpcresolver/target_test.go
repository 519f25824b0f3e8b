package grpcresolver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

// A target names a listener as gRPC's own does: by the bootstrap's templates, and the target's authority. What it names
// that is not in the bootstrap is an error, and is not asked for elsewhere.
//
// spec: BOOT-6, BOOT-7
func TestTargets(t *testing.T) {
	t.Parallel()
	const listeners, assignments = "/envoy.config.listener.v3.Listener/", "/envoy.config.endpoint.v3.ClusterLoadAssignment/"
	for _, tt := range []struct{ target, template, name, fault string }{
		{target: "xdswatch:///orders", name: "orders"},
		{target: "xdswatch:///orders", template: "clients/%s", name: "clients/orders"},
		{target: "xdswatch:///a b", template: "xdstp://east" + listeners + "%s", name: "xdstp://east" + listeners + "a%20b"},
		{target: "xdswatch:///xdstp://east" + listeners + "orders", name: "xdstp://east" + listeners + "orders"},
		{target: "xdswatch://east/orders", template: "clients/%s", name: "xdstp://east" + listeners + "orders"},
		{target: "xdswatch://west/orders", name: "xdstp://west" + listeners + "of/orders"},
		{target: "xdswatch://south/orders", fault: `"south": authority is not in the bootstrap`},
		{target: "xdswatch-eds:///orders", template: "clients/%s", name: "orders"},
		{target: "xdswatch-eds:///xdstp://east" + assignments + "orders", name: "xdstp://east" + assignments + "orders"},
		{target: "xdswatch-eds://east/orders", fault: `xdswatch-eds:///xdstp://east` + assignments + `orders`},
	} {
		t.Run(tt.target, func(t *testing.T) {
			ctx, server := viewtest.Patience(t), testutil.StartServer(t)
			boot := server.Bootstrap()
			boot.ClientDefaultListenerTemplate = tt.template
			boot.Authorities = map[string]bootstrap.Authority{"east": {}, "west": {ClientListenerTemplate: "xdstp://west" + listeners + "of/%s"}}
			c, err := client.New(client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: server.DialOptions()}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			channel, err := grpc.NewClient(tt.target, grpc.WithResolvers(grpcresolver.NewBuilder(c), grpcresolver.NewEDSBuilder(c)), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer channel.Close()
			if tt.fault != "" {
				_, err := invoke(ctx, channel, "/s/m")
				if status.Code(err) != codes.Unavailable || !strings.Contains(fmt.Sprint(err), tt.fault) {
					t.Errorf("the RPC ended with %v", err)
				}
				return
			}
			channel.Connect()
			stream, err := server.Accept(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if request, err := stream.Next(ctx); err != nil || !slices.Equal(request.Names(), []string{tt.name}) {
				t.Errorf("asked for %v, %v; want %q", request, err, tt.name)
			}
		})
	}
}
