package rtds_test

import (
	"context"
	"fmt"
	"log"

	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/rtds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// A program looks a layer of runtime settings up.
func Example() {
	server, err := testutil.NewCollectionServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	if err := server.Set(testutil.Wrapped("flags", "1", &runtimev3.Runtime{Name: "flags", Layer: &structpb.Struct{Fields: map[string]*structpb.Value{"dark_mode": structpb.NewBoolValue(true)}}})); err != nil {
		log.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(true)})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	layer, err := watcher.Get(context.Background(), c, rtds.Type, "flags")
	fmt.Println(layer.GetLayer().AsMap(), err)
	// Output: map[dark_mode:true] <nil>
}
