package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/apiv2"
)

const (
	// defaultRequestTimeout is that of request_timeout in Envoy's ApiConfigSource.
	defaultRequestTimeout = time.Second
)

// TypeResolver finds the types of protobuf messages by name, as a *protoregistry.Types and
// a *dynamicpb.Types do. It is safe for concurrent use.
type TypeResolver interface {
	protoregistry.MessageTypeResolver
	protoregistry.ExtensionTypeResolver
}

// RESTConfig configures [NewREST]. The zero value works.
type RESTConfig struct {
	// ConnectTimeout bounds an attempt at one endpoint: TCP and TLS together. 0 or less
	// means 20 seconds.
	ConnectTimeout time.Duration
	// MaxReceiveSize is the largest response that is accepted, in bytes of its JSON, after
	// decompression. 0 or less means 128 MiB, as for gRPC; the maximum is 2 GiB
	// less one byte. A larger one fails the poll with RESOURCE_EXHAUSTED.
	MaxReceiveSize int
	// Headers are sent with every poll of every server, before those that the bootstrap
	// gives for a server. A key cannot end in "-bin".
	Headers []bootstrap.Header
	// Paths are the HTTP paths of the polls by type URL, such as "/v3/discovery:clusters", for
	// types that are not Envoy's, or instead of Envoy's paths. At a server of version 2 the type
	// URLs are still those of version 3.
	Paths map[string]string
	// Types are message types besides those that are linked into the program. Resources come as
	// JSON, which can be read only if the type of every message in it is known, those in the Any
	// of a field included: a program has to import an extension's package to read its
	// configuration. A resource with an unknown type is refused.
	Types TypeResolver
	// CredentialFiles is that of [GRPCConfig].
	CredentialFiles func(FileReport)
	// Dial makes connections; nil means a [net.Dialer]. The network is "tcp" or "unix".
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c RESTConfig) withDefaults() RESTConfig {
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = defaultConnectTimeout
	}
	c.MaxReceiveSize = receiveSize(c.MaxReceiveSize)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c
}

// REST is the [Builder] of connections to servers that are polled over HTTP with JSON (xDS
// protocol, "REST-JSON polling subscriptions"). A stream of such a connection carries one type
// in state of the world; a message sent on it is the request of the next poll. A poll
// follows the last after the refresh delay and its jitter. A change of the subscription is
// polled at once, and replaces a poll that the server holds back; an ACK waits for the next
// poll. A poll says the last accepted version, unless the answer that nothing is new would mislead.
// A stream ends with the first poll that fails, or whose response is of another type than the request.
//
// The client uses HTTP/2 if the server offers it under TLS, and no proxy. Safe for concurrent
// use.
type REST struct{ config RESTConfig }

// NewREST makes a builder of connections that poll.
func NewREST(c RESTConfig) *REST { return &REST{config: c.withDefaults()} }

// Build makes a connection to a server with a REST configuration. It returns an error for a
// server without one, for the delta variant and the aggregated stream, which REST does not have,
// for a missing refresh delay or endpoint, and for a header or credential that cannot work.
// Channel credentials are of type "insecure" or "tls".
func (r *REST) Build(s bootstrap.ManagementServer) (Conn, error) {
	c, err := r.build(s)
	if err != nil {
		return nil, buildError(s, err)
	}
	return c, nil
}

func (r *REST) build(s bootstrap.ManagementServer) (*restConn, error) {
	if err := checkREST(s); err != nil {
		return nil, err
	}
	headers, err := restHeaders(r.config.Headers, s.Headers)
	if err != nil {
		return nil, err
	}
	secrets := new(sent)
	for _, values := range headers {
		secrets.add(values...)
	}
	c := newRESTConn(s, r.config, headers)
	c.sent = secrets
	secure := true
	var looks []look
	for i, e := range s.REST().Endpoints {
		endpoint, err := newRESTEndpoint(s, e, r.config)
		if err != nil {
			return nil, fmt.Errorf("endpoint %d, %q: %w", i, e.Address, err)
		}
		if endpoint.secure != nil && endpoint.secure.HasFiles() {
			looks = append(looks, endpoint.secure.Look)
		}
		secure = secure && endpoint.secure != nil
		c.endpoints = append(c.endpoints, endpoint)
	}
	var more []look
	if c.creds, more, err = allCallCreds(s.CallCreds, secure, "an endpoint's is not"); err != nil {
		return nil, err
	}
	c.sent.remember(c.creds)
	go watchFiles(c.ctx, s, append(looks, more...), r.config.CredentialFiles)
	return c, nil
}

func checkREST(s bootstrap.ManagementServer) error {
	switch {
	case s.REST() == nil:
		return errors.New("no REST configuration")
	// REST-5
	case s.Delta:
		return errors.New("REST has no delta variant")
	case len(s.REST().Endpoints) == 0:
		return errors.New("no endpoint to poll")
	case s.REST().RefreshDelay <= 0:
		return errors.New("no refresh delay between polls")
	case s.REST().RequestTimeout < 0:
		return fmt.Errorf("a request timeout of %v", s.REST().RequestTimeout)
	}
	return nil
}

// restHeaders are the headers of every poll.
func restHeaders(lists ...[]bootstrap.Header) (http.Header, error) {
	pairs, err := headerPairs(lists...)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		switch key := pairs[i]; {
		case strings.HasSuffix(key, "-bin"):
			return nil, fmt.Errorf("header %q: binary headers are gRPC's own", key)
		case key == "host", key == "connection", key == "content-length", key == "transfer-encoding", key == "accept-encoding":
			return nil, fmt.Errorf("header %q: the key is HTTP's own", key)
		default:
			h.Add(key, pairs[i+1])
		}
	}
	return h, nil
}

// restPath is what is posted to for a type, at a server of version 2 or 3 (xDS protocol,
// "REST endpoints"). Aggregated and delta discovery have none, nor have the types that only
// those can carry, or that are of the other version.
func restPath(typeURL string, version int) string {
	v3 := apiv2.ToV3(typeURL)
	if (v3 != typeURL) != (version == 2) {
		return ""
	}
	if name := restName(v3); name != "" {
		return fmt.Sprintf("/v%d/discovery:%s", version, name)
	}
	return ""
}

// restName is how a type is called in what is posted to.
func restName(typeURL string) string {
	switch strings.TrimPrefix(typeURL, "type.googleapis.com/") {
	case "envoy.config.listener.v3.Listener":
		return "listeners"
	case "envoy.config.route.v3.RouteConfiguration":
		return "routes"
	case "envoy.config.route.v3.ScopedRouteConfiguration":
		return "scoped-routes"
	case "envoy.config.cluster.v3.Cluster":
		return "clusters"
	case "envoy.config.endpoint.v3.ClusterLoadAssignment":
		return "endpoints"
	case "envoy.extensions.transport_sockets.tls.v3.Secret":
		return "secrets"
	case "envoy.service.runtime.v3.Runtime":
		return "runtime"
	case "envoy.config.core.v3.TypedExtensionConfig":
		return "extension_configs"
	}
	return ""
}
