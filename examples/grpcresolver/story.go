package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"github.com/xdswatch/xdswatch/testutil"
)

// round is how many RPCs show where they go.
const round = 20

// tell changes the endpoints and sees RPCs follow.
func tell(ctx context.Context, management *testutil.ManagementServer, channel *grpc.ClientConn, out io.Writer) error {
	first, err := newBackend()
	if err != nil {
		return err
	}
	defer first.stop()
	second, err := newBackend()
	if err != nil {
		return err
	}
	defer second.stop()

	for i, endpoints := range [][]*backend{{first}, {first, second}, {second}} {
		if err := management.Set(strconv.Itoa(i+1), assignment("backend", endpoints)); err != nil {
			return err
		}
		if err := awaitRPCs(ctx, channel, addresses(endpoints), out); err != nil {
			return err
		}
	}
	management.Stop()
	fmt.Fprintln(out, "the management server is down")
	return awaitRPCs(ctx, channel, addresses([]*backend{second}), out)
}

// awaitRPCs makes RPCs until a round of them has gone to just the backends wanted.
func awaitRPCs(ctx context.Context, channel *grpc.ClientConn, want []string, out io.Writer) error {
	for {
		got, err := makeRPCs(ctx, channel)
		if err != nil {
			return fmt.Errorf("waiting for RPCs to go to %v: %w", want, err)
		}
		if slices.Equal(slices.Sorted(maps.Keys(got)), want) {
			for _, address := range want {
				fmt.Fprintf(out, "%2d RPCs went to %s\n", got[address], address)
			}
			return nil
		}
	}
}

// makeRPCs counts the RPCs of a round by the backend that answered. An RPC waits for
// endpoints where there are none yet.
func makeRPCs(ctx context.Context, channel *grpc.ClientConn) (map[string]int, error) {
	client := healthpb.NewHealthClient(channel)
	byAddress := map[string]int{}
	for range round {
		var p peer.Peer
		if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&p), grpc.WaitForReady(true)); err != nil {
			return nil, err
		}
		byAddress[p.Addr.String()]++
	}
	return byAddress, nil
}
