package resource_test

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/resource"
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
