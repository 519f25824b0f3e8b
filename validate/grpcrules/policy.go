package grpcrules

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	wrrv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	pickfirstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/pick_first/v3"
	ringhashv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	localityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxPolicyDepth is how many policies may stand in each other (gRFC A52).
const maxPolicyDepth = 16

// policyList judges a list of policies, of which the first counts that gRPC knows (gRFC A52).
func (j *judge) policyList(path string, l *clusterv3.LoadBalancingPolicy, depth int) {
	if depth == maxPolicyDepth {
		j.refuses(RuleLBList, path, "more than 16 policies stand in each other")
		return
	}
	for i, p := range l.GetPolicies() {
		if j.policy(at(path, "policies", i)+".typedExtensionConfig.typedConfig", p.GetTypedExtensionConfig().GetTypedConfig(), depth) {
			return
		}
	}
	j.refuses(RuleLBList, path, "there is no policy that gRPC knows")
}

// policy judges a policy and says whether gRPC knows it.
func (j *judge) policy(path string, a *anypb.Any, depth int) (known bool) {
	ring, first, least := &ringhashv3.RingHash{}, &pickfirstv3.PickFirst{}, &leastrequestv3.LeastRequest{}
	wrr, locality := &wrrv3.ClientSideWeightedRoundRobin{}, &localityv3.WrrLocality{}
	old, typed := &udpatypev1.TypedStruct{}, &xdstypev3.TypedStruct{}
	switch {
	case isA(a, &roundrobinv3.RoundRobin{}): // which is not read
	case isA(a, first):
		j.read(path, a, first)
	case isA(a, ring):
		if j.read(path, a, ring) {
			j.ringHash(path, ring)
		}
	case isA(a, least):
		if j.read(path, a, least) && least.GetChoiceCount().GetValue() == 1 { // 0 is lost on gRPC's way to its policy
			j.refuses(RuleLeastRequest, path+".choiceCount", "choice_count is 1")
		}
	case isA(a, wrr):
		if j.read(path, a, wrr) {
			if p := float64(wrr.GetErrorUtilizationPenalty().GetValue()); p < 0 || math.IsNaN(p) || math.IsInf(p, 0) {
				j.refuses(RuleLBConfig, path+".errorUtilizationPenalty", "the penalty is negative, or no number")
			}
		}
	case isA(a, locality):
		if j.read(path, a, locality) {
			j.policyList(path+".endpointPickingPolicy", locality.GetEndpointPickingPolicy(), depth+1)
		}
	case isA(a, old):
		return !j.read(path, a, old) || j.custom(path, old.GetTypeUrl(), old.GetValue())
	case isA(a, typed):
		return !j.read(path, a, typed) || j.custom(path, typed.GetTypeUrl(), typed.GetValue())
	default:
		return false
	}
	return true
}

// maxRing is how large gRPC lets a ring be.
const maxRing = 8 << 20

func (j *judge) ringHash(path string, r *ringhashv3.RingHash) {
	if r.GetHashFunction() != ringhashv3.RingHash_XX_HASH {
		j.refuses(RuleRingHash, path+".hashFunction", "the hash function is not XX_HASH")
	}
	low, high := uint64(1024), uint64(maxRing)
	if v := r.GetMinimumRingSize(); v != nil {
		low = v.GetValue()
	}
	if v := r.GetMaximumRingSize(); v != nil {
		high = v.GetValue()
	}
	if !ringFits(low, high) {
		j.refuses(RuleLBConfig, path, "the ring's sizes are more than 8388608, or not in order")
	}
}

// ringFits judges the sizes of a ring; 0 is gRPC's default.
func ringFits(low, high uint64) bool {
	if low == 0 {
		low = 1024
	}
	if high == 0 {
		high = 4096
	}
	return low <= maxRing && high <= maxRing && low <= high
}

// custom judges a policy that is given as JSON by its name in gRPC, and says whether gRPC knows it.
func (j *judge) custom(path, typeURL string, config *structpb.Struct) (known bool) {
	name := typeURL[strings.LastIndexByte(typeURL, '/')+1:]
	if !j.registered(name) {
		return false
	}
	text, err := json.Marshal(config)
	if err == nil {
		err = j.parsePolicy(name, text)
	}
	if err != nil {
		j.refuses(RuleLBConfig, path+".value", "the policy does not accept its configuration")
	}
	return true
}

// opaque are policies that gRPC's xDS client is made of. Their configuration is not judged.
var opaque = []string{
	"cds_experimental", "outlier_detection_experimental", "priority_experimental", "weighted_target_experimental",
	"xds_cluster_impl_experimental", "xds_cluster_manager_experimental",
}

func (j *judge) registered(name string) bool {
	switch name {
	case "pick_first", "round_robin", "least_request_experimental", "ring_hash_experimental", "weighted_round_robin", "xds_wrr_locality_experimental":
		return true
	}
	return slices.Contains(opaque, name) || slices.Contains(j.Policies, name)
}

var errPolicy = errors.New("not accepted")

// parsePolicy judges the configuration of a policy as the policy does.
func (j *judge) parsePolicy(name string, text []byte) error {
	ok := true
	var err error
	switch name {
	case "pick_first":
		var c struct {
			Shuffle bool `json:"shuffleAddressList"`
		}
		err = json.Unmarshal(text, &c)
	case "least_request_experimental":
		c := struct {
			Count uint32 `json:"choiceCount"`
		}{2}
		err = json.Unmarshal(text, &c)
		ok = c.Count >= 2
	case "ring_hash_experimental":
		var c struct {
			Low    uint64 `json:"minRingSize"`
			High   uint64 `json:"maxRingSize"`
			Header string `json:"requestHashHeader"`
		}
		err = json.Unmarshal(text, &c)
		ok = ringFits(c.Low, c.High)
	case "weighted_round_robin":
		var c struct {
			OOB         bool     `json:"enableOobLoadReport"`
			Reporting   duration `json:"oobReportingPeriod"`
			Blackout    duration `json:"blackoutPeriod"`
			Expiration  duration `json:"weightExpirationPeriod"`
			Update      duration `json:"weightUpdatePeriod"`
			Utilization float64  `json:"errorUtilizationPenalty"`
		}
		err = json.Unmarshal(text, &c)
		ok = c.Utilization >= 0
	case "xds_wrr_locality_experimental":
		var c struct {
			Child json.RawMessage `json:"childPolicy"`
		}
		if err = json.Unmarshal(text, &c); err == nil {
			err = j.parseChild(c.Child)
		}
	}
	if err == nil && !ok {
		err = errPolicy
	}
	return err
}

// parseChild judges a list of policies in JSON: the first counts that gRPC knows.
func (j *judge) parseChild(text []byte) error {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for _, entry := range list {
		if len(entry) != 1 {
			return errPolicy
		}
		for name, config := range entry {
			if j.registered(name) {
				return j.parsePolicy(name, config)
			}
		}
	}
	return errPolicy
}

// duration is one in the JSON of protobuf, as gRPC reads it.
type duration struct{}

var durationText = regexp.MustCompile(`^-?([0-9]*)(\.[0-9]{0,9})?s$`)

func (*duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	parts := durationText.FindStringSubmatch(s)
	if parts == nil || parts[1] == "" && len(parts[2]) < 2 {
		return errPolicy
	}
	const maxSeconds = 315_576_000_000
	if n, err := strconv.ParseInt(parts[1], 10, 64); parts[1] != "" && (err != nil || n > maxSeconds) {
		return errPolicy
	}
	return nil
}
