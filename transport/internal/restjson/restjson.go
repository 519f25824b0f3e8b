// Package restjson turns the messages of the REST-JSON variant of xDS into their wire form
// and back. JSON can only be read by who knows the type of every message in it, those in
// an Any included.
package restjson

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/jsonscan"
	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/wire"
)

// Request is the JSON of a request, with the fields spelled as in the proto file. Servers
// have to take either spelling; this one is Envoy's.
func Request(r *discoveryv3.DiscoveryRequest) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(r)
}

// RequestV2 is Request for a server of version 2, which has not all fields of version 3 and
// may refuse a request with others. Its node has the build_version that apiv2.Node gave it.
func RequestV2(r *discoveryv3.DiscoveryRequest) ([]byte, error) {
	r = proto.CloneOf(r)
	r.ResourceLocators = nil
	if r.Node == nil {
		return Request(r)
	}
	r.Node.DynamicParameters = nil
	body, err := Request(r)
	if err != nil {
		return nil, err
	}
	var fields, node map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(fields["node"], &node); err != nil {
		return nil, err
	}
	if node["build_version"], err = json.Marshal(apiv2.BuildVersion(r.Node)); err != nil {
		return nil, err
	}
	if fields["node"], err = json.Marshal(node); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

var (
	errForeign    = errors.New("a JSON object without any field of a DiscoveryResponse")
	errNotList    = errors.New("resources are no list")
	errUnreadable = fmt.Errorf("more than %d resources cannot be read", maxUnreadable)
)

// Bounds of a response.
const (
	// maxUnreadable is how many resources of a response may be ones that cannot be read.
	maxUnreadable = 10_000
	// maxReason is how many bytes of why one cannot be read are told.
	maxReason = 512
	// maxEnvelope is how many bytes of text may stand beside the resources.
	maxEnvelope = 8 << 20
)

// errEnvelope refuses a response that says too much beside its resources.
var errEnvelope = fmt.Errorf("what stands beside the resources is longer than the limit of %d bytes", maxEnvelope)

// Message is a response in its wire form.
type Message struct {
	Frame   []byte
	TypeURL string // of the response; "" if it says none
	// Faults say why resources cannot be read, by their indices. Of such a resource the frame has a
	// Resource with its name, as far as that can be found, and nothing else.
	Faults map[int]error
}

// Response turns the JSON of a DiscoveryResponse, in either spelling, into its wire form.
// Fields that are not known are left out. Equal JSON makes equal bytes. It ends with the context,
// but for the conversion of a single resource. A resource that cannot be read costs no other.
func Response(ctx context.Context, body []byte, types Resolver) (*Message, error) {
	var list *jsonscan.Value
	fields, size := map[string]json.RawMessage{}, 0
	err := jsonscan.Object(ctx, body, func(key string, v jsonscan.Value) error {
		switch {
		case key == "resources":
			list = &v
			return nil
		case !isField(key):
			return nil
		}
		// H-5, H-9: what is made of a response is bounded, and what is kept of it.
		if size += v.End - v.Start; size > maxEnvelope {
			return errEnvelope
		}
		fields[key] = body[v.Start:v.End]
		return v.Affordable()
	})
	if err != nil {
		return nil, err
	}
	if list == nil && len(fields) == 0 {
		return nil, errForeign
	}
	entries, err := elements(ctx, body, list)
	if err != nil {
		return nil, err
	}
	m, err := envelope(fields, types)
	if err != nil {
		return nil, err
	}
	// The wire form is hardly ever longer than the JSON.
	m.Frame = slices.Grow(m.Frame, len(body))
	d := decoder{types: known{types}}
	for i, v := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		entry, fault := d.entry(body[v.Start:v.End], v.Affordable())
		m.Frame = protowire.AppendTag(m.Frame, resourcesField, protowire.BytesType)
		m.Frame = protowire.AppendBytes(m.Frame, entry)
		if fault == nil {
			continue
		}
		if len(m.Faults) == maxUnreadable {
			return nil, errUnreadable
		}
		if m.Faults == nil {
			m.Faults = map[int]error{}
		}
		m.Faults[i] = fault
	}
	return m, nil
}

// elements finds the resources; none of null. What they cost is known before there is room made
// for any.
func elements(ctx context.Context, body []byte, list *jsonscan.Value) (entries []jsonscan.Value, err error) {
	if list == nil || string(body[list.Start:list.End]) == "null" {
		return nil, nil
	}
	if body[list.Start] != '[' {
		return nil, errNotList
	}
	n, limit := 0, wire.ResourcesIn(len(body))
	err = jsonscan.List(ctx, body, *list, func(i int, _ jsonscan.Value) error {
		if n = i + 1; n > limit {
			return fmt.Errorf("more than %d resources are too many for a response of %d bytes", limit, len(body))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	entries = make([]jsonscan.Value, 0, n)
	err = jsonscan.List(ctx, body, *list, func(_ int, v jsonscan.Value) error {
		entries = append(entries, v)
		return nil
	})
	return entries, err
}

// resourcesField is the number of DiscoveryResponse.resources.
const resourcesField = 2

// isField knows the fields of a response, by which it is told from whatever else a proxy or a
// gateway may say with a 200: taken for an empty response that would delete all there is.
func isField(key string) bool {
	message := (*discoveryv3.DiscoveryResponse)(nil).ProtoReflect().Descriptor().Fields()
	return message.ByJSONName(key) != nil || message.ByTextName(key) != nil
}

// envelope is the wire form of a response without its resources. Details of a status that
// are of unknown types lose their content, which nobody reads.
func envelope(fields map[string]json.RawMessage, types Resolver) (*Message, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	var r discoveryv3.DiscoveryResponse
	options := protojson.UnmarshalOptions{DiscardUnknown: true, Resolver: lenient{known{types}}}
	if err := options.Unmarshal(raw, &r); err != nil {
		return nil, redact.JSON(err, raw, r.ProtoReflect().Descriptor(), known{types}).WithoutPosition()
	}
	frame, err := proto.Marshal(&r)
	if err != nil {
		return nil, err
	}
	return &Message{Frame: frame, TypeURL: r.GetTypeUrl()}, nil
}

// decoder reads resources.
type decoder struct{ types known }

// entry is the Any of one resource. Of one that cannot be read it is a Resource with a name, and
// the fault says why; of one that is not affordable nothing is looked at.
func (d decoder) entry(raw json.RawMessage, unaffordable error) (entry []byte, fault error) {
	if unaffordable != nil {
		return d.unreadable(nil), whyUnread(unaffordable)
	}
	var a anypb.Any
	options := protojson.UnmarshalOptions{DiscardUnknown: true, Resolver: d.types}
	err := options.Unmarshal(raw, &a)
	if err == nil {
		var b []byte
		if b, err = proto.Marshal(&a); err == nil {
			return b, nil
		}
	}
	f := redact.JSON(err, raw, a.ProtoReflect().Descriptor(), d.types)
	if f.Path != "" {
		f = f.WithoutPosition()
	}
	return d.unreadable(raw), whyUnread(f)
}

func whyUnread(err error) error {
	text := err.Error()
	return errors.New("it cannot be read: " + strings.ToValidUTF8(text[:min(len(text), maxReason)], ""))
}

// unreadable stands for a resource that cannot be read.
func (d decoder) unreadable(raw json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // without fields there is no name
	w := &discoveryv3.Resource{ResourceName: variantOf(fields)}
	if w.ResourceName.GetName() == "" {
		w.Name = d.nameOf(fields)
	}
	var a anypb.Any
	_ = a.MarshalFrom(w) // the texts are valid, and nothing else can fail
	b, _ := proto.Marshal(&a)
	return b
}
