package viewtest

import (
	"fmt"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/testutil"
)

// answers is a stream in delta of a server that says at once what it does not have. The cache of
// go-control-plane is silent about it, so that clients would have to wait.
type answers struct {
	grpc.ServerStream
	server *testutil.ManagementServer

	mu   sync.Mutex
	said int
}

// RecvMsg sends its answer before the cache gets the request, and so before what the cache has meanwhile.
func (a *answers) RecvMsg(m any) error {
	if err := a.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	req, ok := m.(*discoveryv3.DeltaDiscoveryRequest)
	if !ok { // in state of the world
		return nil
	}
	s, err := a.server.Cache().GetSnapshot(testutil.NodeKey)
	if err != nil {
		return nil // no snapshot is set
	}
	have, resp := s.GetResources(req.GetTypeUrl()), &discoveryv3.DeltaDiscoveryResponse{TypeUrl: req.GetTypeUrl()}
	for _, name := range req.GetResourceNamesSubscribe() {
		if have[name] == nil && name != "*" {
			resp.RemovedResources = append(resp.RemovedResources, name)
		}
	}
	if len(resp.RemovedResources) == 0 {
		return nil
	}
	a.said++
	resp.Nonce = fmt.Sprint("absent ", a.said)
	return a.SendMsg(resp)
}

func (a *answers) SendMsg(m any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ServerStream.SendMsg(m)
}
