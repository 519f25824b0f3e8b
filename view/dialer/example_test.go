package dialer_test

import (
	"context"
	"log"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/dialer"
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
	ctx := context.Background()
	v, err := view.New(ctx, c, view.Root{Type: view.RootCluster, Name: "postgres"}, view.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Stop()
	conn, err := dialer.New(v, dialer.Config{Attempts: 3}).DialContext(ctx, "tcp", "postgres:5432")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
}
