package xdstp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Prefixes of the keys of the parameters that clients add (xRFC TP1, "Context parameters";
// xds.core.v3.ContextParams).
const (
	reservedPrefix  = "xds."                // all of them
	NodePrefix      = "xds.node."           // fields of the node
	featurePrefix   = "xds.client_feature." // what the client can do with a type
	attributePrefix = "xds.resource."       // what the client found out about a resource
)

// The keys of the well-known attributes.
const (
	keyVIP              = attributePrefix + "vip"
	keyListeningAddress = attributePrefix + "listening_address"
)

// VIP is the attribute "xds.resource.vip": the virtual IP for which a Listener is wanted
// on demand (xRFC TP1). An IPv4 address is written as one even if it is mapped into IPv6.
func VIP(addr netip.Addr) Param {
	// CTX-3: the key and the form of the value are fixed.
	return Param{Key: keyVIP, Value: addr.Unmap().String()}
}

// ListeningAddress is the attribute "xds.resource.listening_address": the address on which
// a Listener listens, as "IP:port" with brackets around an IPv6 address
// (xds.core.v3.ContextParams). An IPv4 address is written as one even if it is mapped into
// IPv6.
func ListeningAddress(addr netip.AddrPort) Param {
	// CTX-3: the key and the form of the value are fixed.
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	return Param{Key: keyListeningAddress, Value: addr.String()}
}

// Attribute is an attribute of a resource that has no function of its own here: the key is
// "xds.resource." and the name.
func Attribute(name, value string) Param {
	return Param{Key: attributePrefix + name, Value: value}
}

// ClientFeature says that the client supports a feature of a type, such as
// "lb.least_loaded": the key is "xds.client_feature." and the name, the value "true".
func ClientFeature(name string) Param {
	return Param{Key: featurePrefix + name, Value: "true"}
}

// Context is what a client adds to the parameters of a name. The zero Context adds
// nothing. It is immutable by convention: [Context.Apply] may be called from any goroutine.
type Context struct {
	// Node are parameters of the node, or others that a name may override, in any order.
	Node []Param
	// Features are made by [ClientFeature]; they override the name.
	Features []Param
	// Attributes are made by [VIP], [ListeningAddress] and [Attribute]; they override all
	// others.
	Attributes []Param
}

// ContextFunc returns the context of a type by its URL, or the zero Context. Features and
// attributes belong to a type; node parameters are added to the roots of Listener and
// Cluster collections only (envoy.config.bootstrap.v3.Bootstrap.node_context_params). It
// must not block, and is called from any goroutine.
type ContextFunc func(typeURL string) Context

// Apply returns the name in requests: the parameters of the node, overridden by those of the
// name, then the features, then the attributes (xRFC TP1, "Context parameters"; Envoy). It
// changes neither the name nor the context. The server's response has exactly the parameters of
// the result.
func (c Context) Apply(n Name) Name {
	added := len(c.Node) + len(c.Features) + len(c.Attributes)
	if added == 0 {
		return n
	}
	all := make([]Param, 0, len(n.Params)+added)
	// CTX-1: the later layer wins.
	for _, layer := range [...][]Param{c.Node, n.Params, c.Features, c.Attributes} {
		all = append(all, layer...)
	}
	slices.SortStableFunc(all, compareParams)
	n.Params = keepLast(all)
	return n
}

// Check says what is wrong with a context: a feature or an attribute with a key of another
// kind, a parameter of the node with a key of theirs, or a well-known attribute whose
// value is no address. The error is an [*Error] with its Field set.
func (c Context) Check() error {
	layers := []struct {
		field  string
		params []Param
		check  func(Param) string
	}{
		{"Node", c.Node, nodeFault},
		{"Features", c.Features, featureFault},
		{"Attributes", c.Attributes, attributeFault},
	}
	for _, l := range layers {
		for i, p := range l.params {
			if reason := l.check(p); reason != "" {
				field := fmt.Sprintf("Context.%s[%d]", l.field, i)
				return fieldFault(field, PartParams, fmt.Sprintf("%q %s", p.Key, reason))
			}
		}
	}
	return nil
}

func nodeFault(p Param) string {
	for _, prefix := range []string{featurePrefix, attributePrefix} {
		if strings.HasPrefix(p.Key, prefix) {
			return fmt.Sprintf("begins with %q, but is a parameter of the node", prefix)
		}
	}
	return ""
}

func featureFault(p Param) string {
	if !strings.HasPrefix(p.Key, featurePrefix) {
		return fmt.Sprintf("does not begin with %q", featurePrefix)
	}
	return ""
}

func attributeFault(p Param) string {
	var err error
	switch {
	case !strings.HasPrefix(p.Key, attributePrefix):
		return fmt.Sprintf("does not begin with %q", attributePrefix)
	// CTX-3: a well-known attribute is an address.
	case p.Key == keyVIP:
		_, err = netip.ParseAddr(p.Value)
	case p.Key == keyListeningAddress:
		_, err = netip.ParseAddrPort(p.Value)
	}
	if err != nil {
		return fmt.Sprintf("has the value %q, which is no address", p.Value)
	}
	return ""
}

// CheckReserved says whether a name may be given by a program: none of its keys begins
// with "xds.", which are the client's to set, and none of its values with '@', which is
// kept for extensions (xRFC TP1, "Context parameters"). Names that servers send may have
// such keys, and are not checked. The error is an [*Error] whose Input is the text of
// [Name.String].
func (n Name) CheckReserved() error {
	for _, p := range n.Params {
		isKey := strings.HasPrefix(p.Key, reservedPrefix)
		if !isKey && !strings.HasPrefix(p.Value, "@") {
			continue
		}
		text := n.String()
		at := offsetOfParam(text, p.Key)
		// CTX-1: xds.* is the client's.
		if isKey {
			return fault(text, PartParams, at, `a key that begins with "xds." is the client's to set`)
		}
		at += strings.IndexByte(text[at:], '=') + 1
		return fault(text, PartParams, at, "a value that begins with '@' is reserved")
	}
	return nil
}

// CheckReserved is [Name.CheckReserved] for the locator and its alternatives. The Input of
// the error is the name at fault.
func (l Locator) CheckReserved() error {
	for depth := 0; depth <= maxAltDepth; depth++ {
		if err := l.Name.CheckReserved(); err != nil {
			return err
		}
		alt := l.Alt()
		if alt == nil {
			break
		}
		l = *alt
	}
	return nil
}

// Param returns the value of a context parameter; ok is false if the name has none of that
// key.
func (n Name) Param(key string) (value string, ok bool) {
	for _, p := range n.Params {
		if p.Key == key {
			return p.Value, true
		}
	}
	return "", false
}
