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
	"errors"
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
		if c.Limit > 0 {
			return "says everything in one request"
		}
		return ""
	}, func(e *kit.Env) (kit.Client, error) { return start(e, *decode) })
}

// start makes a client of each server.
func start(e *kit.Env, decode string) (kit.Client, error) {
	cs := clients{sc: e.Scenario()}
	for number := range e.Servers {
		cc, err := dial(e, number)
		if err != nil {
			return nil, err
		}
		switch decode {
		case "once":
			cs.all = append(cs.all, newOnce(e, cc))
		case "diff":
			cs.all = append(cs.all, &diff{e: e, cc: cc})
		default:
			cs.all = append(cs.all, &raw{e: e, cc: cc, delta: e.Variant == kit.Delta})
		}
	}
	if len(cs.all) == 1 {
		return cs.all[0], nil
	}
	return cs, nil
}

func dial(e *kit.Env, server int) (*grpc.ClientConn, error) {
	addr, err := kit.ServerAddr(e.Addr, server)
	if err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()
	if t := e.ClientTLS(); t != nil {
		creds = credentials.NewTLS(t)
	}
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
}

// clients are those of several servers, which take equal parts of the names.
type clients struct {
	sc  *kit.Scenario
	all []kit.Client
}

func (cs clients) Subscribe(names []string) error {
	if names == nil {
		return errors.ErrUnsupported
	}
	each := cs.sc.Subscriptions()
	for i, c := range cs.all {
		if err := c.Subscribe(names[i*each : (i+1)*each]); err != nil {
			return err
		}
	}
	return nil
}

func (cs clients) Watch(string, int) error { return errors.ErrUnsupported }
func (cs clients) Cancel(string) error     { return errors.ErrUnsupported }

func (cs clients) Close() {
	for _, c := range cs.all {
		c.Close()
	}
}
