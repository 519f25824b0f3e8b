package xdstp_test

import (
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/xdstp"
)

func ExampleParse() {
	n, err := xdstp.Parse("xdstp://traffic.test/envoy.config.cluster.v3.Cluster/shop:80?zone=b&env=prod")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(n.Authority, n.Type, n.ID)
	fmt.Println(n)
	// Output:
	// traffic.test envoy.config.cluster.v3.Cluster shop:80
	// xdstp://traffic.test/envoy.config.cluster.v3.Cluster/shop%3A80?env=prod&zone=b
}

func ExampleError() {
	_, err := xdstp.Parse("xdstp://traffic.test")
	if e, ok := errors.AsType[*xdstp.Error](err); ok {
		fmt.Println(e.Part, e.Offset)
	}
	fmt.Println(err)
	// Output:
	// type 20
	// xdstp: "xdstp://traffic.test": type at byte 20: is missing: no '/' ends the authority
}
