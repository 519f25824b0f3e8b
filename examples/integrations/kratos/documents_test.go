package kratos_test

import (
	"context"

	transport "github.com/go-kratos/kratos/v2/transport/grpc"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/examples/integrations/kratos"
)

// What README.md quotes of this function compiles; TestChannel shows what it does.
var _ = dial

func dial(ctx context.Context) (*grpc.ClientConn, error) {
	boot, err := bootstrap.Load("bootstrap.json")
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		return nil, err
	}
	channel, err := transport.DialInsecure(ctx, // of kratos
		transport.WithEndpoint("discovery:///orders"),
		transport.WithDiscovery(kratos.New(c, "grpc")))
	return channel, err
}
