package client

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
)

// SetNodeParameters sets the dynamic parameters of a type in the node (Node.dynamic_parameters);
// an empty map removes them. The bootstrap's node may have some from the start. If they change,
// the client sends each server at which it subscribes to the type a request of the type with the
// node at once. Later streams have them too, until the client is closed. The client does not
// send them to servers of version 2 of the transport. The method does not block, and does not
// keep the map.
//
// They are not the dynamic parameters of names; see [bootstrap.DynamicParameters].
//
// Errors: [ErrClosed], and one that says which text is not UTF-8.
func (c *Client) SetNodeParameters(typeURL string, params map[string]string) error {
	texts := slices.AppendSeq(slices.AppendSeq([]string{typeURL}, maps.Keys(params)), maps.Values(params))
	if i := slices.IndexFunc(texts, func(s string) bool { return !utf8.ValidString(s) }); i >= 0 {
		return fmt.Errorf("xds: parameters of the node: %q is not UTF-8", texts[i])
	}
	if !c.engine.Post(machine.ParamsChanged{TypeURL: typeURL, Values: maps.Clone(params)}) {
		return ErrClosed
	}
	return nil
}

// Node is the node that the client sent on its newest stream, with the parameters of
// [Client.SetNodeParameters]; before the first stream, and after Close, that of the bootstrap as the client
// completes it, without Config.Node. The program may change it.
func (c *Client) Node() *corev3.Node {
	var encoded []byte
	c.engine.Ask(func(m *machine.Machine) { encoded = m.Node() })
	if encoded == nil {
		encoded = c.ownBytes
	}
	return decodeNode(encoded)
}

// features are those of the client that a node tells. A program that has more says so in Config.Node.
var features = []string{"xds.config.resource-in-sotw", "xds.config.supports-resource-ttl"}

// completed is a bootstrap's node with what the client says of itself.
func completed(n *corev3.Node) *corev3.Node {
	n = proto.CloneOf(n)
	// NODE-3: the library's, unless the bootstrap has one.
	if n.UserAgentName == "" {
		n.UserAgentName = "xdswatch"
		n.UserAgentVersionType = &corev3.Node_UserAgentVersion{UserAgentVersion: Version}
	}
	// NODE-4: features that work.
	for _, feature := range features {
		if !slices.Contains(n.ClientFeatures, feature) {
			n.ClientFeatures = append(n.ClientFeatures, feature)
		}
	}
	return n
}

// makeNode makes the node of a stream. If the program does not return one that can be encoded, it is the client's.
func (c *Client) makeNode() []byte {
	made, id := c.ownBytes, c.boot.Node.GetId()
	if c.config.Node == nil {
		return made
	}
	defer func() { c.madeID.Store(&id) }()
	const andSo = "; the stream has the node of the bootstrap"
	engine.Apart(func() {
		// NODE-3: the program may change all of it.
		n := c.config.Node(decodeNode(c.ownBytes))
		b, err := encodeNode(n)
		if err != nil {
			c.engine.Complain("the node of Config.Node cannot be encoded"+andSo, "", "", err.Error())
			return
		}
		made, id = b, n.GetId()
	}, func(p any) { c.left("Config.Node", andSo, p) })
	return made
}

// NodeID is the ID of the node that the client sent on its newest stream, as Config.Node may have changed it; before the
// first stream that of the bootstrap. Servers choose by it what they send, so errors name it.
func (c *Client) NodeID() string {
	if id := c.madeID.Load(); id != nil {
		return *id
	}
	return c.boot.Node.GetId()
}

func encodeNode(n *corev3.Node) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(n)
}

// decodeNode decodes what was encoded.
func decodeNode(b []byte) *corev3.Node {
	n := &corev3.Node{}
	_ = proto.Unmarshal(b, n)
	return n
}
