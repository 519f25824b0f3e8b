package main

import (
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/testutil"
)

// serve serves "backend", with as many localities as asked for.
func serve(server *testutil.ManagementServer, version string, localities int) error {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: "backend"}
	for range localities {
		a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{})
	}
	return server.Set(version, a)
}
