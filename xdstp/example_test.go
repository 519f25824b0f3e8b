package xdstp_test

import (
	"errors"
	"fmt"
	"net/netip"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	"google.golang.org/protobuf/proto"

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

func ExampleParseURN() {
	for _, text := range []string{
		"xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop",
		"xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop/*",
		"xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop#entry=a",
	} {
		n, err := xdstp.ParseURN(text)
		if e, ok := errors.AsType[*xdstp.Error](err); ok {
			fmt.Println(e.Part, "at", e.Offset, e.Reason)
			continue
		}
		fmt.Println(n)
	}
	// Output:
	// xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop
	// id at 53 is a glob, which names no single resource
	// directives at 52 the name of one resource has none
}

// A name as a map key.
func ExampleCanonical() {
	held := make(map[string]int)
	for _, name := range []string{
		"xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop?b=2&a=1",
		"xdstp://cp.test/envoy.config.cluster.v3.Cluster/sh%6Fp?a=1&b=2",
		"old-style",
	} {
		key, err := xdstp.Canonical(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		held[key]++
	}
	fmt.Println(held)
	// Output:
	// map[old-style:1 xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop?a=1&b=2:2]
}

func ExampleDecodeLocator() {
	redirect := &xdscorev3.ResourceLocator{
		Authority: "cp.test", ResourceType: "envoy.config.cluster.v3.Cluster", Id: "shop",
	}
	b, err := proto.Marshal(redirect)
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := xdstp.DecodeLocator(b)
	fmt.Println(l, err)
	// Output:
	// xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop <nil>
}

func ExampleLocator_URN() {
	l, err := xdstp.ParseLocator("xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop" +
		"#alt=xdstp://spare.test/envoy.config.cluster.v3.Cluster/shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.URN())
	fmt.Println(l.Alt())
	// Output:
	// xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop <nil>
	// xdstp://spare.test/envoy.config.cluster.v3.Cluster/shop
}

func ExampleLocator_Proto() {
	l, err := xdstp.ParseLocator("xdstp://cp.test/envoy.config.cluster.v3.Cluster/shop/*?env=prod")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := l.Proto()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.GetId(), m.GetExactContext().GetParams())
	// Output:
	// shop/* map[env:prod]
}

func ExampleContext_Apply() {
	n, err := xdstp.Parse("xdstp://cp.test/envoy.config.listener.v3.Listener/ingress/*?env=prod")
	if err != nil {
		fmt.Println(err)
		return
	}
	context := xdstp.Context{
		Node:       []xdstp.Param{{Key: "xds.node.id", Value: "n1"}, {Key: "env", Value: "test"}},
		Attributes: []xdstp.Param{xdstp.VIP(netip.MustParseAddr("10.0.0.1"))},
	}
	fmt.Println(context.Apply(n))
	// Output:
	// xdstp://cp.test/envoy.config.listener.v3.Listener/ingress/*?env=prod&xds.node.id=n1&xds.resource.vip=10.0.0.1
}

func ExampleName_IsListCollection() {
	const listener = "type.googleapis.com/envoy.config.listener.v3.Listener"
	for _, text := range []string{
		"xdstp://cp.test/envoy.config.listener.v3.ListenerCollection/all",
		"xdstp://cp.test/envoy.config.listener.v3.Listener/all",
	} {
		n, err := xdstp.Parse(text)
		fmt.Println(n.IsListCollection(listener), err)
	}
	// Output:
	// true <nil>
	// false <nil>
}
