package lives

import (
	"fmt"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// setup is one way in which a real server is spoken to.
type setup struct {
	server  string
	build   func(*truth) server
	variant client.Variant
	streams client.Streams
	single  bool // the server has one type
	// star says that the server knows a wildcard that is asked for as "*", and also that it
	// ends: the snapshot cache does not in state of the world, and in delta it goes on to
	// think that what it sent for the wildcard is there.
	star bool
}

func (s setup) String() string {
	variant, streams := "sotw", "aggregated"
	if s.variant == client.VariantDelta {
		variant = "delta"
	}
	if s.streams == client.StreamsPerType {
		streams = "per-type"
	}
	return strings.Join([]string{s.server, variant, streams}, "/")
}

// setups are the servers, in each variant that they have.
func setups() []setup {
	var all []setup
	for _, kind := range []setup{
		{server: "snapshot-ads", build: snapshotADS},
		{server: "snapshot", build: snapshot},
		{server: "linear", build: linear, single: true, star: true},
		{server: "mux", build: mux, star: true},
	} {
		for _, kind.variant = range []client.Variant{client.VariantSotW, client.VariantDelta} {
			for _, kind.streams = range []client.Streams{client.StreamsAggregated, client.StreamsPerType} {
				s := kind
				all = append(all, s)
			}
		}
	}
	return append(all,
		setup{server: "snapshot-ads-ordered", build: snapshotOrdered, variant: client.VariantSotW, streams: client.StreamsAggregated},
		setup{server: "cilium", build: cilium, variant: client.VariantSotW, streams: client.StreamsPerType},
		setup{server: "contour", build: contour, single: true, variant: client.VariantSotW, streams: client.StreamsPerType},
	)
}

// temper is what a life's seed decides about the client.
type temper struct {
	linger  time.Duration // as in client.Config
	timeout time.Duration // as in client.Config
}

func (t temper) String() string {
	return fmt.Sprintf("linger %v, resource timeout %v", t.linger, t.timeout)
}
