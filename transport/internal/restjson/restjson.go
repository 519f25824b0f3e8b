// Package restjson turns the messages of the REST-JSON variant of xDS into their wire form
// and back. JSON can only be read by who knows the type of every message in it, those in
// an Any included.
package restjson

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// maxReason is how long the reason in a type URL may be, in bytes.
	maxReason = 512
)

// Response turns the JSON of a DiscoveryResponse, in either spelling, into its wire form.
// Fields that are not known are left out. Equal JSON makes equal bytes. Beside it Response
// returns the response's type URL; "" if it says none. It ends with the context, but for the
// conversion of a single resource.
//
// A resource that cannot be read costs no other: it keeps its name, if that can be found,
// in a Resource without a usable type, whose type URL says what is wrong with it. So it is
// refused by itself, by whoever looks at its type.
func Response(ctx context.Context, body []byte, types Resolver) (frame []byte, typeURL string, err error) {
	var list *jsonscan.Value
	fields := map[string]json.RawMessage{}
	err = jsonscan.Object(ctx, body, func(key string, v jsonscan.Value) error {
		if key == "resources" {
			list = &v
			return nil
		}
		fields[key] = body[v.Start:v.End]
		return v.Affordable()
	})
	if err != nil {
		return nil, "", err
	}
	if list == nil && !isResponse(fields) {
		return nil, "", errForeign
	}
	entries, err := elements(ctx, body, list)
	if err != nil {
		return nil, "", err
	}
	frame, typeURL, err = envelope(fields, types)
	if err != nil {
		return nil, "", err
	}
	d := decoder{types: known{types}}
	for _, v := range entries {
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		if d.unread > maxUnreadable {
			return nil, "", errUnreadable
		}
		frame = protowire.AppendTag(frame, resourcesField, protowire.BytesType)
		frame = protowire.AppendBytes(frame, d.entry(body[v.Start:v.End], v.Affordable()))
	}
	return frame, typeURL, nil
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
	n, limit := 0, wire.MaxEntries(len(body))
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

// isResponse tells a response from whatever else a proxy or a gateway may say with a 200:
// taken for an empty response it would delete all there is.
func isResponse(fields map[string]json.RawMessage) bool {
	message := (*discoveryv3.DiscoveryResponse)(nil).ProtoReflect().Descriptor().Fields()
	for key := range fields {
		if message.ByJSONName(key) != nil || message.ByTextName(key) != nil {
			return true
		}
	}
	return false
}

// envelope is the wire form of a response without its resources. Details of a status that
// are of unknown types lose their content, which nobody reads.
func envelope(fields map[string]json.RawMessage, types Resolver) (frame []byte, typeURL string, err error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, "", err
	}
	var r discoveryv3.DiscoveryResponse
	options := protojson.UnmarshalOptions{DiscardUnknown: true, Resolver: lenient{known{types}}}
	if err := options.Unmarshal(raw, &r); err != nil {
		return nil, "", redact.JSON(err, raw, r.ProtoReflect().Descriptor(), known{types}).WithoutPosition()
	}
	frame, err = proto.Marshal(&r)
	return frame, r.GetTypeUrl(), err
}

// decoder reads resources.
type decoder struct {
	types  known
	unread int // resources that cannot be read
}

// entry is the Any of one resource; of one that is not affordable nothing is looked at.
func (d *decoder) entry(raw json.RawMessage, unaffordable error) []byte {
	if unaffordable != nil {
		return d.unreadable(nil, unaffordable)
	}
	var a anypb.Any
	options := protojson.UnmarshalOptions{DiscardUnknown: true, Resolver: d.types}
	err := options.Unmarshal(raw, &a)
	if err == nil {
		var b []byte
		if b, err = proto.Marshal(&a); err == nil {
			return b
		}
	}
	f := redact.JSON(err, raw, a.ProtoReflect().Descriptor(), d.types)
	if f.Path != "" {
		f = f.WithoutPosition()
	}
	return d.unreadable(raw, f)
}

// unreadable stands for a resource that cannot be read.
func (d *decoder) unreadable(raw json.RawMessage, reason error) []byte {
	d.unread++
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // without fields there is no name
	text := reason.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
	w := &discoveryv3.Resource{
		ResourceName: variantOf(fields),
		Resource:     &anypb.Any{TypeUrl: fmt.Sprintf("%s that cannot be read (%s)", cmp.Or(redact.TypeURL(payloadURL(fields)), "a resource"), text)},
	}
	if w.ResourceName.GetName() == "" {
		w.Name = d.nameOf(fields)
	}
	a, err := anypb.New(w)
	if err != nil {
		a = &anypb.Any{TypeUrl: "cannot be read"}
	}
	b, _ := proto.Marshal(a) // the texts are valid, and nothing else can fail
	return b
}
