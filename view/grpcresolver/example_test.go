package grpcresolver_test

import (
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view/grpcresolver"
)

func Example() {
	boot, err := bootstrap.Load("bootstrap.json")
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	channel, err := grpc.NewClient("xdswatch:///orders.example",
		grpc.WithResolvers(grpcresolver.NewBuilder(c), grpcresolver.NewEDSBuilder(c)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer channel.Close()
}
