package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// Address is where an endpoint listens, in the words of net.Dial.
type Address struct {
	Network string // "tcp", "udp" or "unix"
	Addr    string // host:port, or the path of a socket
}

// Endpoint is one endpoint. It must not be changed.
type Endpoint struct {
	Address Address
	// More are further addresses of the same endpoint, such as one of IPv6 (gRFC A61).
	More []Address
	// Hostname is the endpoint's own, for auto_host_rewrite (gRFC A81), or ""; see Config.DNS.
	Hostname string
	// HashKey takes the address's place in ring hash (gRFC A76), or is "".
	HashKey string
	// Proxy is the HTTP proxy through which the endpoint is reached (gRFC A86), or nil: the
	// endpoint's own, else its locality's.
	Proxy *Address
	// Weight is that among the endpoints of the locality, 1 by default.
	Weight   uint32
	Priority uint32
	// Locality has the endpoint; Message is what it was read from. They must not be changed.
	Locality *endpointv3.LocalityLbEndpoints
	Message  *endpointv3.LbEndpoint
}

// RingWeight is the weight in ring hash: that of the locality times that of the endpoint (gRFC A42).
func (e *Endpoint) RingWeight() uint64 {
	// VIEW-63: a locality without a weight counts as 1.
	return uint64(max(e.Locality.GetLoadBalancingWeight().GetValue(), 1)) * uint64(e.Weight)
}

// Dial connects with dial to the first of the endpoint's addresses that answers, one after the other in
// their order (gRFC A61). An error joins those of all that were tried until ctx ended.
func (e *Endpoint) Dial(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error)) (net.Conn, error) {
	conn, err := dial(ctx, e.Address.Network, e.Address.Addr)
	for i := 0; err != nil && i < len(e.More) && ctx.Err() == nil; i++ {
		var other error
		if conn, other = dial(ctx, e.More[i].Network, e.More[i].Addr); other == nil {
			return conn, nil
		}
		err = errors.Join(err, other)
	}
	return conn, err
}

// health is what may be done with an endpoint.
type health uint8

const (
	usable health = iota
	draining
	unusable
)

// VIEW-61: endpoints that are healthy or of unknown health are used, draining ones for sessions
// that they have, others not at all.
func healthOf(e *endpointv3.LbEndpoint) health {
	switch e.GetHealthStatus() {
	case corev3.HealthStatus_UNKNOWN, corev3.HealthStatus_HEALTHY:
		return usable
	case corev3.HealthStatus_DRAINING:
		return draining
	default:
		return unusable
	}
}

// read makes an Endpoint of a message. An error says why it cannot be used.
func read(m *endpointv3.LbEndpoint, l *endpointv3.LocalityLbEndpoints) (Endpoint, error) {
	e := Endpoint{
		Hostname: m.GetEndpoint().GetHostname(), Weight: 1, Priority: l.GetPriority(), Locality: l, Message: m,
	}
	if w := m.GetLoadBalancingWeight(); w != nil {
		e.Weight = w.GetValue()
		if e.Weight == 0 {
			return e, errors.New("the weight is 0")
		}
	}
	var err error
	if e.Address, err = addressOf(m.GetEndpoint().GetAddress()); err != nil {
		return e, err
	}
	for _, more := range m.GetEndpoint().GetAdditionalAddresses() {
		address, err := addressOf(more.GetAddress())
		if err != nil {
			return e, fmt.Errorf("additional address: %w", err)
		}
		e.More = append(e.More, address)
	}
	e.extras(m.GetMetadata(), l.GetMetadata())
	return e, nil
}

const (
	lbMetadata    = "envoy.lb"
	proxyMetadata = "envoy.http11_proxy_transport_socket.proxy_address"
)

// VIEW-62: a hash key, and the address of a proxy, which the endpoint says before its locality.
func (e *Endpoint) extras(own, locality *corev3.Metadata) {
	e.HashKey = own.GetFilterMetadata()[lbMetadata].GetFields()["hash_key"].GetStringValue()
	for _, md := range []*corev3.Metadata{own, locality} {
		packed, ok := md.GetTypedFilterMetadata()[proxyMetadata]
		if !ok {
			continue
		}
		m := &corev3.Address{}
		if packed.UnmarshalTo(m) != nil {
			continue
		}
		if address, err := addressOf(m); err == nil {
			e.Proxy = &address
			return
		}
	}
}

func addressOf(a *corev3.Address) (Address, error) {
	switch a := a.GetAddress().(type) {
	case *corev3.Address_SocketAddress:
		s := a.SocketAddress
		switch {
		case s.GetAddress() == "":
			return Address{}, errors.New("no address")
		case s.GetNamedPort() != "":
			return Address{}, errors.New("named ports are not supported")
		case s.GetPortValue() == 0 || s.GetPortValue() > 65535:
			return Address{}, fmt.Errorf("port %d is not between 1 and 65535", s.GetPortValue())
		}
		network := "tcp"
		if s.GetProtocol() == corev3.SocketAddress_UDP {
			network = "udp"
		}
		return Address{network, net.JoinHostPort(s.GetAddress(), strconv.Itoa(int(s.GetPortValue())))}, nil
	case *corev3.Address_Pipe:
		if a.Pipe.GetPath() == "" {
			return Address{}, errors.New("pipe without a path")
		}
		return Address{"unix", a.Pipe.GetPath()}, nil
	case nil:
		return Address{}, errors.New("no address")
	default:
		return Address{}, errors.New("internal addresses are not supported")
	}
}
