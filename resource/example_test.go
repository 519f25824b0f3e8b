package resource_test

import (
	"errors"
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// A type of one's own needs no more than its message. Without a NameField its resources
// are named by their wrappers.
func ExampleProto() {
	typ := resource.Proto[*durationpb.Duration](resource.Options{})

	b, err := proto.Marshal(&durationpb.Duration{Seconds: 90})
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := typ.Decode(resource.Source{}, b)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(typ.TypeURL(), v.(*durationpb.Duration).AsDuration())
	// Output: type.googleapis.com/google.protobuf.Duration 1m30s
}

// A check of the program's own: what it does not accept, the client refuses.
func ExampleWith() {
	checked := resource.With(cds.Type, func(c *clusterv3.Cluster) error {
		if c.GetConnectTimeout().AsDuration() > time.Minute {
			return errors.New("the connect timeout is over a minute")
		}
		return nil
	})
	_, err := checked.Decode(resource.Source{}, slow())
	fmt.Println(err)
	// Output: the connect timeout is over a minute
}

// A type whose values are what the program works with. They are made once for each version.
func ExampleMap() {
	timeouts := resource.Map(cds.Type, func(c *clusterv3.Cluster) (time.Duration, error) {
		return c.GetConnectTimeout().AsDuration(), nil
	})
	v, err := timeouts.Decode(resource.Source{}, slow())
	fmt.Println(v, err)
	// Output: 1h0m0s <nil>
}

// A relay, or a program that uses ten of ten thousand resources, decodes what it reads.
func ExampleLazyOf() {
	lazy := resource.LazyOf(cds.Type)
	v, err := lazy.Decode(resource.Source{}, slow())
	if err != nil {
		fmt.Println(err) // the bytes are no cluster
		return
	}
	cluster, err := v.(*resource.Lazy[*clusterv3.Cluster]).Value()
	fmt.Println(cluster.GetName(), err)
	// Output: backend <nil>
}

// Resources of any Go type: here the bytes are the value.
func ExampleCustom() {
	type text string
	texts := resource.Custom(resource.TypePrefix+"example.v1.Text", resource.Options{},
		func(_ resource.Source, b []byte) (text, error) {
			if len(b) > 80 {
				return "", errors.New("longer than 80 bytes")
			}
			return text(b), nil
		})
	v, err := texts.Decode(resource.Source{}, []byte("hello"))
	fmt.Println(v, err)
	// Output: hello <nil>
}

// slow is a cluster as a server sends it.
func slow() []byte {
	b, err := proto.Marshal(&clusterv3.Cluster{Name: "backend", ConnectTimeout: durationpb.New(time.Hour)})
	if err != nil {
		panic(err)
	}
	return b
}
