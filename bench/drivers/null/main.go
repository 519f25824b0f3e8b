// Command null measures the floor, and a few things near it.
//
//	-decode=none  receives frames and drops them; requests are put together from ready-made
//	              bytes
//	-decode=once  receives messages with the generated client, unmarshals every resource
//	              once and calls a callback. -retain says what it keeps by name: none, bytes
//	              (of the Any) or proto (the message)
//	-decode=diff  state of the world only, and no floor but a mark to aim at: walks the
//	              response in wire form, compares each entry with what was at the same place
//	              in the last response, and unmarshals only what differs. It keeps the bytes
//	              of every entry
//
// They know the workload: a fanout is one subscription, and the cancelling of watches is
// told to the server once, at the end.
package main

import (
	"flag"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/xdswatch/xdswatch/bench/kit"
)

func main() {
	decode := flag.String("decode", "none", "none|once|diff")
	kit.Main("null", func(c *kit.Config) string {
		if *decode == "diff" && (c.Variant != "sotw" || c.Work == kit.Fanout || c.Work == kit.Incr || c.Work == kit.Cancel) {
			return "nothing to compare"
		}
		return ""
	}, func(e *kit.Env) (kit.Client, error) {
		cc, err := dial(e)
		if err != nil {
			return nil, err
		}
		switch *decode {
		case "once":
			return newOnce(e, cc), nil
		case "diff":
			return &diff{e: e, cc: cc}, nil
		}
		return &raw{e: e, cc: cc, delta: e.Variant == kit.Delta}, nil
	})
}

func dial(e *kit.Env) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if t := e.ClientTLS(); t != nil {
		creds = credentials.NewTLS(t)
	}
	return grpc.NewClient("passthrough:///"+e.Addr, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
}
