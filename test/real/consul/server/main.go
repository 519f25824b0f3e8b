// Command server is Consul's own xDS server, of delta alone, without the rest of Consul. Each line of
// its input is a variation of Consul's fixtures, which becomes what it has for the sidecar proxy. It ends
// with its input.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"sync"

	"github.com/hashicorp/consul/acl"
	"github.com/hashicorp/consul/agent/grpc-external/limiter"
	"github.com/hashicorp/consul/agent/proxycfg"
	"github.com/hashicorp/consul/agent/structs"
	"github.com/hashicorp/consul/agent/xds"
	"github.com/hashicorp/go-hclog"
	fixture "github.com/mitchellh/go-testing-interface"
	"google.golang.org/grpc"
)

// source is where the server has the configuration of proxies from.
type source struct {
	mu      sync.Mutex
	newest  *proxycfg.ConfigSnapshot
	watches map[chan *proxycfg.ConfigSnapshot]bool
}

// Watch gives each stream the newest configuration, and what comes then.
func (s *source) Watch(structs.ServiceID, string, string) (<-chan *proxycfg.ConfigSnapshot, limiter.SessionTerminatedChan, proxycfg.SrcTerminatedChan, context.CancelFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan *proxycfg.ConfigSnapshot, 1)
	s.watches[ch] = true
	if s.newest != nil {
		ch <- s.newest
	}
	return ch, nil, nil, func() {
		s.mu.Lock()
		delete(s.watches, ch)
		s.mu.Unlock()
	}, nil
}

func (s *source) set(snapshot *proxycfg.ConfigSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest != nil { // another certificate would change all clusters
		snapshot.Roots, snapshot.ConnectProxy.Leaf = s.newest.Roots, s.newest.ConnectProxy.Leaf
	}
	s.newest = snapshot
	for ch := range s.watches {
		select {
		case <-ch: // nobody has taken the last
		default:
		}
		ch <- snapshot
	}
}

func main() {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	from := &source{watches: map[chan *proxycfg.ConfigSnapshot]bool{}}
	server := grpc.NewServer()
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: os.Stderr})
	xds.NewServer("node", logger, from, func(string) (acl.Authorizer, error) { return acl.ManageAll(), nil }, nil).Register(server)
	go func() {
		if err := server.Serve(lis); err != nil {
			log.Fatal(err)
		}
	}()
	fmt.Println("listening", lis.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		from.set(proxycfg.TestConfigSnapshotDiscoveryChain(&fixture.RuntimeT{}, lines.Text(), false, nil, nil))
	}
}
