package lives

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// server is a real server in memory. One that was killed stays dead; its successor is a new one.
type server interface {
	// register adds the server's services.
	register(*grpc.Server)
	// change makes changes to a type: texts by name, and "" for what goes.
	change(typ, content)
	// stop ends what outlives the server's streams.
	stop()
	// mute says that the server says nothing to the names that were asked for last, this one among
	// them, whatever becomes of them.
	mute(k typ, name string) bool
}

var errRefused = errors.New("connection refused")

// place is where servers of one address come and go.
type place struct {
	build func(*truth) server
	truth *truth

	mu  sync.Mutex
	run *run // nil while there is no server
}

type run struct {
	server server
	grpc   *grpc.Server
	lis    *bufconn.Listener
	served chan struct{} // closed when it serves no more
}

// begin starts a server with what there is.
func (p *place) begin() {
	r := &run{
		server: p.build(p.truth),
		grpc:   grpc.NewServer(grpc.WaitForHandlers(true)),
		lis:    bufconn.Listen(1 << 20),
		served: make(chan struct{}),
	}
	r.server.register(r.grpc)
	p.truth.publish(true)
	p.mu.Lock()
	p.run = r
	p.mu.Unlock()
	go func() {
		defer close(r.served)
		_ = r.grpc.Serve(r.lis) // it fails only by being stopped
	}()
}

// kill cuts all connections.
func (p *place) kill() {
	p.mu.Lock()
	r := p.run
	p.run = nil
	p.mu.Unlock()
	if r == nil {
		return
	}
	p.truth.publish(false)
	r.grpc.Stop()
	<-r.served
	r.server.stop()
}

// current is the server, or nil.
func (p *place) current() server {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil
	}
	return p.run.server
}

func (p *place) dial(ctx context.Context, _ string) (net.Conn, error) {
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r == nil {
		return nil, errRefused
	}
	return r.lis.DialContext(ctx)
}
