package transport

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/transport/internal/restjson"
)

// restConn is a [Conn] to a server that is polled. All its streams use the same endpoint,
// until one of them finds that it fails.
type restConn struct {
	name      string // as the server is told of
	v2        bool   // of the transport
	rest      bootstrap.REST
	config    RESTConfig
	types     restjson.Resolver
	headers   http.Header
	creds     []credentials.PerRPCCredentials
	sent      *sent
	endpoints []*restEndpoint
	holder    holder

	// ctx ends when the connection is closed, and its streams with it.
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu sync.Mutex
	at int // of the endpoint that is used
}

func newRESTConn(s bootstrap.ManagementServer, config RESTConfig, headers http.Header) *restConn {
	c := &restConn{name: s.Name(), v2: s.TransportV2, rest: *s.REST(), config: config, headers: headers}
	// REST-3: one second by default.
	c.rest.RequestTimeout = cmp.Or(c.rest.RequestTimeout, defaultRequestTimeout)
	if config.Types != nil {
		c.types = config.Types
	}
	if c.v2 {
		c.types = restjson.V2(c.types)
	}
	headers.Set("Content-Type", "application/json")
	headers.Set("Accept", "application/json")
	headers.Set("User-Agent", "xdswatch")
	// Says to the HTTP client that a poll may be repeated when a connection that was idle
	// turns out to be closed; with no value it is not sent.
	headers["Idempotency-Key"] = []string{}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// Open is documented at [Conn]. It connects to the first endpoint from the current one that
// can be reached, unless that is done already.
func (c *restConn) Open(ctx context.Context, _ string) (Stream, error) {
	if err := c.reach(ctx); err != nil {
		return nil, &ConnectError{Server: c.name, Err: err}
	}
	return newRESTStream(ctx, c), nil
}

func (c *restConn) reach(ctx context.Context) error {
	ctx, cancel := c.bound(ctx)
	defer cancel(nil)
	var faults []string
	for range c.endpoints {
		if cause := cmp.Or(context.Cause(c.ctx), context.Cause(ctx)); cause != nil {
			return cause
		}
		e := c.endpoint()
		err := e.reach(ctx)
		if err == nil {
			return nil
		}
		faults = append(faults, fmt.Sprintf("%s: %v", e.address, err))
		c.failed(e)
	}
	if cause := cmp.Or(context.Cause(c.ctx), context.Cause(ctx)); cause != nil {
		return cause
	}
	return status.Error(codes.Unavailable, strings.Join(faults, "; "))
}

// bound is a context that ends with ctx and with the connection.
func (c *restConn) bound(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	context.AfterFunc(ctx, func() { stop() })
	return ctx, cancel
}

func (c *restConn) endpoint() *restEndpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints[c.at]
}

// failed has the next endpoint used, unless another stream has seen to that.
func (c *restConn) failed(e *restEndpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// REST-5: its clusters are used in turn.
	if c.endpoints[c.at] == e {
		c.at = (c.at + 1) % len(c.endpoints)
	}
}

// path is what is posted to for a type.
func (c *restConn) path(typeURL string) (string, error) {
	own, version := c.config.Paths[typeURL], 3
	if c.v2 {
		own, version = c.config.Paths[apiv2.ToV3(typeURL)], 2
	}
	if path := cmp.Or(own, restPath(typeURL, version)); path != "" {
		return path, nil
	}
	return "", status.Errorf(codes.Unimplemented, "nothing is known to poll the type %q at, in version %d; RESTConfig.Paths can say it", typeURL, version)
}

// answers says whether a response of a type is one to a poll for a type, as it is if it says
// none. At a server of version 2 it may be of either version.
func (c *restConn) answers(typeURL, asked string) bool {
	return typeURL == "" || typeURL == asked || c.v2 && apiv2.ToV3(typeURL) == apiv2.ToV3(asked)
}

// header is that of one poll, with what the call credentials give for it.
func (c *restConn) header(ctx context.Context, e *restEndpoint, path string) (http.Header, error) {
	h := c.headers.Clone()
	if len(c.creds) == 0 {
		return h, nil
	}
	info := credentials.RequestInfo{Method: path}
	if e.secure != nil {
		common := credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}
		info.AuthInfo = credentials.TLSInfo{CommonAuthInfo: common}
	}
	ctx = credentials.NewContextWithRequestInfo(ctx, info)
	for _, creds := range c.creds {
		pairs, err := creds.GetRequestMetadata(ctx, e.base.String())
		if err != nil {
			return nil, err
		}
		for key, value := range pairs {
			h.Set(key, value)
		}
	}
	return h, nil
}

// Close is documented at [Conn].
func (c *restConn) Close() error {
	c.cancel(ErrClosed)
	for _, e := range c.endpoints {
		e.close()
	}
	return nil
}
