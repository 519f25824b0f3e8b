package main

import (
	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/testutil"
)

// memory is a station in memory.
type memory struct {
	*station
	server *testutil.Server
}

func newMemory(name string) *memory {
	s := newStation(false)
	return &memory{s, testutil.NewServer(append(s.options(), testutil.Named(name))...)}
}

// inMemory is the dialer of a client of several such servers.
func inMemory(servers []*memory) []grpc.DialOption {
	var all []*testutil.Server
	for _, m := range servers {
		all = append(all, m.server)
	}
	return []grpc.DialOption{testutil.InMemory(all...)}
}
