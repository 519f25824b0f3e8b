package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
)

// server is a management server in the state of the world. It sends what is asked for, and at
// commands from its standard input ("eds 1000") so many changes, each when the last has its ACK.
type server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	world world
	held  map[string]map[string]*anypb.Any // by type URL and name

	mu      sync.Mutex
	command chan command // of the newest stream
}

type command struct {
	typeURL string
	changes int
}

func serve(w world) {
	s := &server{world: w, held: map[string]map[string]*anypb.Any{
		ldsURL: {listenerName: pack(w.listener())}, rdsURL: {routesName: pack(w.routing(0))}, cdsURL: {}, edsURL: {},
	}}
	for i := range w.clusters {
		s.held[cdsURL][w.cluster(i)], s.held[edsURL][w.cluster(i)] = pack(w.clusterOf(i)), pack(w.endpoints(i, 0))
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	g := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s)
	go func() { check(g.Serve(lis)) }()
	fmt.Println(lis.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		kind, count, _ := strings.Cut(in.Text(), " ")
		n, err := strconv.Atoi(count)
		check(err)
		s.mu.Lock()
		s.command <- command{map[string]string{"eds": edsURL, "rds": rdsURL}[kind], n}
		s.mu.Unlock()
	}
}

// StreamAggregatedResources serves one stream.
func (s *server) StreamAggregatedResources(gs discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	st := &stream{server: s, gs: gs, sent: map[string]bool{}, nonces: map[string]string{}}
	commands, inbox := make(chan command, 1), newInbox()
	s.mu.Lock()
	s.command = commands
	s.mu.Unlock()
	go inbox.fill(gs)
	for {
		select {
		case st.left = <-commands:
			if err := st.change(); err != nil {
				return err
			}
		case <-inbox.ready:
			all, open := inbox.take()
			for _, r := range all {
				if err := st.answer(r); err != nil {
					return err
				}
			}
			if !open {
				return nil
			}
		}
	}
}

// inbox is requests that came and were not answered. The newest of a type is all that counts of it.
type inbox struct {
	ready chan struct{}

	mu     sync.Mutex
	newest []*discoveryv3.DiscoveryRequest
	over   bool
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (in *inbox) fill(gs discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) {
	for {
		r, err := gs.Recv()
		in.mu.Lock()
		in.newest = slices.DeleteFunc(in.newest, func(old *discoveryv3.DiscoveryRequest) bool { return old.GetTypeUrl() == r.GetTypeUrl() })
		if in.over = err != nil; !in.over {
			in.newest = append(in.newest, r)
		}
		in.mu.Unlock()
		select {
		case in.ready <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (in *inbox) take() (all []*discoveryv3.DiscoveryRequest, open bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	all, in.newest = in.newest, nil
	return all, !in.over
}

type stream struct {
	*server
	gs     discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	sent   map[string]bool   // by type URL and name
	nonces map[string]string // the newest, by type URL
	count  int
	left   command // changes that are still to be sent
	made   int     // changes
}

// answer sends what a request names for the first time, of clusters with all others, and after an ACK
// the next change.
func (st *stream) answer(r *discoveryv3.DiscoveryRequest) error {
	url := r.GetTypeUrl()
	var all, fresh []*anypb.Any
	for _, name := range r.GetResourceNames() {
		if a := st.held[url][name]; a != nil {
			all = append(all, a)
			if !st.sent[url+" "+name] {
				st.sent[url+" "+name] = true
				fresh = append(fresh, a)
			}
		}
	}
	switch {
	case len(fresh) > 0 && url == cdsURL:
		return st.send(url, all)
	case len(fresh) > 0:
		return st.send(url, fresh)
	case st.left.changes > 0 && url == st.left.typeURL && r.GetResponseNonce() == st.nonces[url]:
		return st.change()
	}
	return nil
}

func (st *stream) change() error {
	st.left.changes--
	st.made++
	if st.left.typeURL == rdsURL {
		return st.send(rdsURL, []*anypb.Any{pack(st.world.routing(st.made))})
	}
	return st.send(edsURL, []*anypb.Any{pack(st.world.endpoints(st.world.changed(), st.made))})
}

func (st *stream) send(url string, all []*anypb.Any) error {
	st.count++
	st.nonces[url] = strconv.Itoa(st.count)
	return st.gs.Send(&discoveryv3.DiscoveryResponse{
		TypeUrl: url, VersionInfo: strconv.Itoa(st.count), Nonce: st.nonces[url], Resources: all,
	})
}
