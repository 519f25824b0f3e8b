package nodeparams_test

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/xdstp"
	"github.com/xdswatch/xdswatch/xdstp/nodeparams"
)

func ExampleRender() {
	node := &corev3.Node{
		Id: "sidecar-1",
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"shard": structpb.NewNumberValue(7),
		}},
	}
	params, err := nodeparams.Render(node, []string{"id", "metadata"})
	if err != nil {
		fmt.Println(err)
		return
	}
	name := xdstp.Name{Authority: "cp.test", Type: "envoy.config.listener.v3.Listener", ID: "*"}
	fmt.Println(xdstp.Context{Node: params}.Apply(name))
	// Output:
	// xdstp://cp.test/envoy.config.listener.v3.Listener/*?xds.node.id=sidecar-1&xds.node.metadata.shard=7
}
