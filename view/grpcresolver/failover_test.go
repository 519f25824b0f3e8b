package grpcresolver

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view/endpoint"
)

// fixed is a resolver with one plan.
type fixed struct{ plan *plan }

func (fixed) Scheme() string { return "fixed" }

func (f fixed) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	publish(cc, f.plan)
	return ended{func() {}}, nil
}

func leafOf(name string, localities ...*endpointv3.LocalityLbEndpoints) member {
	return member{leaf: &leaf{name: name, set: endpoint.New(viewtest.Assignment(name, localities...), endpoint.Config{GRPC: true})}}
}

// An endpoint that does not answer holds up RPCs for ten seconds, then those of the next priority
// and of the next leaf are used. Without any, RPCs wait on, and are not dropped meanwhile.
//
// spec: VIEW-63
func TestFailover(t *testing.T) {
	register()
	at := func(priority, port uint32) *endpointv3.LocalityLbEndpoints {
		return viewtest.Locality(priority, map[uint32]uint32{port: 1})
	}
	dropping := viewtest.Assignment("a", at(0, 1))
	dropping.Policy = &endpointv3.ClusterLoadAssignment_Policy{DropOverloads: []*endpointv3.ClusterLoadAssignment_Policy_DropOverload{
		{Category: "flood", DropPercentage: &typev3.FractionalPercent{Numerator: 100}},
	}}
	drops := member{leaf: &leaf{name: "a", set: endpoint.New(dropping, endpoint.Config{GRPC: true})}}
	for name, tt := range map[string]struct {
		members []member
		want    time.Duration // 0: in vain
	}{
		"the next priority":        {[]member{leafOf("a", at(0, 1), at(1, 9))}, 10 * time.Second},
		"the next leaf":            {[]member{leafOf("a", at(0, 1)), leafOf("b", at(0, 9))}, 10 * time.Second},
		"the same priority":        {[]member{leafOf("a", viewtest.Locality(0, map[uint32]uint32{1: 1, 9: 1}))}, time.Nanosecond},
		"nothing else":             {[]member{leafOf("a", at(0, 1), at(1, 2))}, 0},
		"nothing else in the next": {[]member{leafOf("a", at(0, 1)), {leaf: &leaf{name: "b", why: func(string) error { return errors.New("no endpoints") }}}}, 0},
		"nothing else, and drops":  {[]member{drops}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lis := bufconn.Listen(1 << 16)
				s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
					return stream.SendMsg(&emptypb.Empty{})
				}))
				go s.Serve(lis)
				defer s.Stop()
				channel, err := grpc.NewClient("fixed:///x", grpc.WithResolvers(fixed{&plan{clusters: map[string]*cluster{"": {members: tt.members}}}}),
					grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
						if address == "127.0.0.1:9" {
							return lis.DialContext(ctx)
						}
						<-ctx.Done() // nobody answers
						return nil, ctx.Err()
					}))
				if err != nil {
					t.Fatal(err)
				}
				defer channel.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				begin := time.Now()
				err = channel.Invoke(ctx, "/s/m", &emptypb.Empty{}, &emptypb.Empty{})
				took := time.Since(begin)
				if tt.want == 0 && status.Code(err) != codes.DeadlineExceeded {
					t.Errorf("the RPC did not wait: %v", err)
				}
				if (err == nil) != (tt.want > 0) || err == nil && took > tt.want+time.Second || err == nil && took < tt.want-time.Second {
					t.Errorf("the RPC took %v and ended with %v, want %v", took, err, tt.want)
				}
			})
		})
	}
}
