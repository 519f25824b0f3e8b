package bootstrap

import (
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// grpcNode reads node, of which gRPC takes four fields, all optional (gRFC A27), and
// besides dynamic_parameters.
func (x field) grpcNode() *corev3.Node {
	if !x.object() {
		return &corev3.Node{}
	}
	x.mayHave(nodeKeys...)
	x.at("locality").mayHave(localityKeys...)
	// NODE-2: the fields that gRPC's bootstrap has.
	return &corev3.Node{
		Id:       x.at("id").str(),
		Cluster:  x.at("cluster").str(),
		Metadata: x.at("metadata").structure(),
		Locality: x.at("locality").locality(),

		DynamicParameters: x.at(dynamicParameters).nodeField(dynamicParameters).DynamicParameters,
	}
}

const dynamicParameters = "dynamic_parameters"

// envoyNode reads the whole of node, where id and cluster are required as Envoy has it.
func (x field) envoyNode() *corev3.Node {
	faults := len(x.doc.faults)
	// BOOTE-4
	x.at("id").required()
	x.at("cluster").required()
	x.at("metadata").object()
	locality := x.at("locality").locality()
	n := &corev3.Node{}
	if !x.object() || len(x.doc.faults) > faults {
		return n
	}
	m := x.val.(map[string]any)
	// NODE-2: all fields.
	for _, key := range slices.Sorted(maps.Keys(m)) {
		proto.Merge(n, x.at(key).nodeField(key))
	}
	n.Locality = locality
	return n
}

// nodeField is a Node with one field, so that a fault is that field's.
func (x field) nodeField(name string) *corev3.Node {
	n := &corev3.Node{}
	if !x.present() {
		return n
	}
	text, err := json.Marshal(map[string]any{name: x.val})
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, n)
	}
	if err != nil {
		x.fault("%s", protoReason(err))
		return &corev3.Node{}
	}
	return n
}

var (
	protoPrefix = regexp.MustCompile(`^proto:\s*`)
	protoPlace  = regexp.MustCompile(`\s*\(line [0-9:]+\)`)
)

// protoReason is an error of protojson without its prefix and the places in a text that
// nobody wrote.
func protoReason(err error) string {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	text = protoPrefix.ReplaceAllString(text, "")
	return strings.TrimLeft(protoPlace.ReplaceAllString(text, ""), ": ")
}

// locality is nil if all its fields are empty, so that it is absent on the wire.
func (x field) locality() *corev3.Locality {
	if !x.object() {
		return nil
	}
	l := &corev3.Locality{
		Region:  x.at("region").str(),
		Zone:    x.at("zone").str(),
		SubZone: x.at("sub_zone").str(),
	}
	if l.Region == "" && l.Zone == "" && l.SubZone == "" {
		return nil
	}
	return l
}

// structure is an object as a google.protobuf.Struct, whose numbers are doubles.
func (x field) structure() *structpb.Struct {
	if !x.object() {
		return nil
	}
	v, err := doubles(x.val)
	if err != nil {
		x.fault("%v", err)
		return nil
	}
	s, err := structpb.NewStruct(v.(map[string]any))
	if err != nil {
		x.fault("%s", protoReason(err))
	}
	return s
}

var errOutOfRange = errors.New("a number is out of the range of a double")

// doubles is a copy of a tree in which numbers are float64.
func doubles(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		n, err := v.Float64()
		if err != nil {
			err = errOutOfRange // H-3: the error of strconv quotes the value
		}
		return n, err
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if out[k], err = doubles(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if out[i], err = doubles(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}
