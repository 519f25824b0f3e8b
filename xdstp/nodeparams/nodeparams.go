// Package nodeparams renders fields of an Envoy node as context parameters of xdstp names,
// as Envoy's bootstrap asks for it with node_context_params
// (envoy.config.bootstrap.v3.Bootstrap).
//
// Fields are spelled as there: "id", "cluster", "user_agent_name", "user_agent_version",
// "user_agent_build_version.version", "user_agent_build_version.metadata",
// "locality.region", "locality.zone", "locality.sub_zone" and "metadata". One key of a
// metadata field is asked for as "metadata.KEY" (xRFC TP1, "Context parameters").
//
// Everything here is a pure function of its input and safe for concurrent use.
package nodeparams

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/xdstp"
)

// ErrUnknownField says that a node has no field of that name that can be a parameter.
var ErrUnknownField = errors.New("nodeparams: unknown field of a node")

// Check says whether every field can be rendered. The error wraps [ErrUnknownField] and
// names the first that cannot.
func Check(fields []string) error {
	for _, field := range fields {
		if _, ok := textFields[field]; ok {
			continue
		}
		if _, _, ok := metadataField(field); !ok {
			return fmt.Errorf("%w: %q", ErrUnknownField, field)
		}
	}
	return nil
}

// Render gives the parameters of a node for the fields, each with its key once, in the
// order of the keys. A key is "xds.node." and the field; "metadata" gives one parameter for
// each key of the metadata, with its value as JSON, in which a string keeps its quotes.
// A field that is not set gives an empty value, and a build version "0.0.0", as in Envoy; a
// key of the metadata that is not there gives nothing. A nil node has no field set.
//
// The error wraps [ErrUnknownField], or says which value cannot be written as JSON.
func Render(node *corev3.Node, fields []string) ([]xdstp.Param, error) {
	if err := Check(fields); err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for _, field := range fields {
		if text, ok := textFields[field]; ok {
			values[field] = text(node)
		} else if err := addMetadata(values, node, field); err != nil {
			return nil, err
		}
	}
	params := make([]xdstp.Param, 0, len(values))
	// CTX-2: the key is the field behind xds.node.
	for _, field := range slices.Sorted(maps.Keys(values)) {
		params = append(params, xdstp.Param{Key: xdstp.NodePrefix + field, Value: values[field]})
	}
	return params, nil
}

// textFields are the fields whose value is their text. It is never changed.
var textFields = map[string]func(*corev3.Node) string{
	"id":                 (*corev3.Node).GetId,
	"cluster":            (*corev3.Node).GetCluster,
	"user_agent_name":    (*corev3.Node).GetUserAgentName,
	"user_agent_version": (*corev3.Node).GetUserAgentVersion,
	"locality.region":    func(n *corev3.Node) string { return n.GetLocality().GetRegion() },
	"locality.zone":      func(n *corev3.Node) string { return n.GetLocality().GetZone() },
	"locality.sub_zone":  func(n *corev3.Node) string { return n.GetLocality().GetSubZone() },

	"user_agent_build_version.version": buildVersion,
}

func buildVersion(n *corev3.Node) string {
	v := n.GetUserAgentBuildVersion().GetVersion()
	return fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
}

// metadataField cuts a field into the one that holds metadata and the key that is wanted;
// "" means every key.
func metadataField(field string) (holder, key string, ok bool) {
	for holder := range metadataOf {
		if field == holder {
			return holder, "", true
		}
		if key, ok := strings.CutPrefix(field, holder+"."); ok && key != "" {
			return holder, key, true
		}
	}
	return "", "", false
}

// metadataOf are the fields that hold metadata. It is never changed.
var metadataOf = map[string]func(*corev3.Node) *structpb.Struct{
	"metadata": (*corev3.Node).GetMetadata,
	"user_agent_build_version.metadata": func(n *corev3.Node) *structpb.Struct {
		return n.GetUserAgentBuildVersion().GetMetadata()
	},
}

// addMetadata adds one key of the metadata, or all, by their fields.
func addMetadata(values map[string]string, node *corev3.Node, field string) error {
	holder, wanted, _ := metadataField(field)
	metadata := metadataOf[holder](node).GetFields()
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if wanted != "" && key != wanted {
			continue
		}
		text, err := toJSON(metadata[key])
		if err != nil {
			return fmt.Errorf("nodeparams: %s.%s: %w", holder, key, err)
		}
		values[holder+"."+key] = text
	}
	return nil
}

// toJSON is the same for the same value at all times: no spaces, keys in order. A number
// that is not finite becomes its name in quotes.
func toJSON(v *structpb.Value) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v.AsInterface()); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
