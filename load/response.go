package load

import (
	"fmt"

	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Bounds of what a server may ask for; it may ask for all clusters without naming them.
const (
	maxClusters = 262_144
	maxResponse = 64 << 20 // bytes
)

// decode reads a response.
func decode(b []byte) (*lrsv3.LoadStatsResponse, error) {
	if len(b) > maxResponse {
		return nil, fmt.Errorf("a response of %d bytes is larger than the limit of %d", len(b), maxResponse)
	}
	// H-5: a name without bytes takes sixteen.
	clusters := 0
	for rest := b; len(rest) > 0; {
		num, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			break // as Unmarshal will say
		}
		size := protowire.ConsumeFieldValue(num, typ, rest[n:])
		if size < 0 {
			break
		}
		if num == 1 {
			clusters++
		}
		rest = rest[n+size:]
	}
	if clusters > maxClusters {
		return nil, fmt.Errorf("a response names %d clusters, more than the limit of %d", clusters, maxClusters)
	}
	r := &lrsv3.LoadStatsResponse{}
	return r, proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, r)
}
