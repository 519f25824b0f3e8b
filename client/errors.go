package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport"
)

// ErrorKind is the kind of an error. Its texts are stable.
type ErrorKind string

// Kinds of errors.
const (
	ErrorConnection ErrorKind = "connection" // the client could not open a stream to the server, or a poll failed
	ErrorStream     ErrorKind = "stream"     // the stream ended before its first response, or ends when the client subscribes to the type
	ErrorRejected   ErrorKind = "rejected"   // the resource was invalid and NACKed
	ErrorData       ErrorKind = "data"       // an error that the server sent, a deletion that is ignored, or a redirect that leads nowhere
	ErrorTimeout    ErrorKind = "timeout"    // no answer in time, which is transient at this server
	ErrorConfig     ErrorKind = "config"     // a name that is malformed or has no servers; a server or a type that cannot be used
)

// Transient says whether the error is on the way to the server and not in the resource.
func (k ErrorKind) Transient() bool {
	// ERR-1: trouble with the server.
	return k == ErrorConnection || k == ErrorStream || k == ErrorTimeout
}

// ResourceError is an error about a resource, or about a collection as a whole. It wraps
// what caused it.
type ResourceError struct {
	Kind ErrorKind
	Type string // URL
	Name string // "" of what was refused of a response, whatever its names are
	// Server is the server's URI: if several cannot be reached, the last that was tried; for
	// ErrorConfig, the server whose locator cannot be followed, or empty.
	Server  string
	NodeID  string
	Version string // that was refused, or that had the error; empty where there is none
	Err     error
}

func (e *ResourceError) Error() string {
	what := textOf(e.Type, e.Name)
	if e.Name == "" && e.Kind == ErrorRejected {
		what = shortType(e.Type) + " response"
	}
	if errors.As(e.Err, new(serverErrors)) {
		return "xds: " + textFor(what, "", e.NodeID) + ": no server can be reached: " + e.Err.Error()
	}
	why := ""
	switch e.Kind {
	case ErrorConnection:
		why = "the server cannot be reached: "
		if errors.As(e.Err, new(*transport.PollError)) {
			why = "a poll failed: "
		}
	case ErrorStream:
		why = "the stream ended before a response: "
	case ErrorRejected:
		why = "rejected: "
	}
	return "xds: " + textFor(what, e.Server, e.NodeID) + ": " + why + strings.TrimPrefix(e.Err.Error(), "xds: ")
}

// textOf is a resource as texts have it.
func textOf(typeURL, name string) string { return fmt.Sprintf("%s %q", shortType(typeURL), name) }

// textFor is what a server has, or lacks, for a node.
func textFor(what, server, node string) string {
	if server != "" {
		what += fmt.Sprintf(" of server %q", server)
	}
	return fmt.Sprintf("%s for node %q", what, node)
}

// shortType is a type URL as texts have it.
func shortType(typeURL string) string {
	return cmp.Or(strings.TrimPrefix(typeURL, resource.TypePrefix), "resource")
}

// Unwrap returns the cause. If several servers cannot be reached it wraps a [*ServerError] for
// each, as [errors.Join] does. An error that the server sent for the resource is a gRPC status
// error with the server's code.
func (e *ResourceError) Unwrap() error { return e.Err }

// GRPCStatus has the code UNAVAILABLE, whatever the code of what caused the error: a handler of a gRPC server that
// returns the error does not tell its clients what the management server said to this one (gRFC A88).
func (e *ResourceError) GRPCStatus() *status.Status {
	// C-5, DNE-8, ERR-11: codes of the control plane are none of the data plane.
	return status.New(codes.Unavailable, e.Error())
}

// ErrDeletionKept says that a server deleted a resource whose value the client keeps, as
// configured, for good or for a while: see [DeletionPolicy]. The [*ResourceError] that wraps it
// is of kind [ErrorData].
var ErrDeletionKept = machine.ErrDeletionKept

// ServerError is the trouble of one server of a source with several, none of which can be
// reached: the [*ResourceError] wraps one for each, in order of priority.
type ServerError struct {
	Kind   ErrorKind // ErrorConnection or ErrorStream
	Server string    // URI, as in [Event]
	Err    error
}

func (e *ServerError) Error() string {
	text := "cannot be reached"
	if e.Kind == ErrorStream {
		text = "ended the stream before a response"
	}
	return fmt.Sprintf("server %q %s: %s", e.Server, text, strings.TrimPrefix(e.Err.Error(), "xds: "))
}

// Unwrap returns the cause.
func (e *ServerError) Unwrap() error { return e.Err }

// serverErrors are the trouble of all servers of a source.
type serverErrors []error

func (es serverErrors) Error() string {
	texts := make([]string, len(es))
	for i, err := range es {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (es serverErrors) Unwrap() []error { return es }

// FetchTimeoutError says that a watch had no answer within its initial fetch timeout; see
// [InitialFetchTimeout]. The [*ResourceError] that wraps it is of kind [ErrorTimeout].
type FetchTimeoutError struct {
	After time.Duration
}

func (e *FetchTimeoutError) Error() string { return (*machine.FetchTimeoutError)(e).Error() }

func (c *Client) resourceError(f *machine.Fault, server int, typeURL, name string) *ResourceError {
	e := &ResourceError{
		// ERR-11: type, resource, server and node.
		Kind: ErrorKind(f.Kind.String()), Type: typeURL, Name: name, Server: c.uri(server),
		NodeID: c.NodeID(), Version: f.Version, Err: f.Err,
	}
	var se *machine.StatusError
	if errors.As(f.Err, &se) {
		e.Err = status.Error(codes.Code(se.Code), se.Message)
	}
	if ft, ok := f.Err.(*machine.FetchTimeoutError); ok {
		e.Err = (*FetchTimeoutError)(ft)
	}
	if e.Kind == ErrorStream {
		// S-6: the variant may be the cause.
		e.Err = c.explain(e.Err, server)
	}
	if len(f.Servers) > 0 {
		// U-7: each of the servers.
		e.Err = c.serverErrors(f.Servers)
	}
	return e
}

func (c *Client) serverErrors(all []machine.ServerFault) error {
	var errs serverErrors
	for _, f := range all {
		one := c.resourceError(f.Fault, f.Server, "", "")
		errs = append(errs, &ServerError{Kind: one.Kind, Server: one.Server, Err: one.Err})
	}
	return errs
}

// explain adds what an operator would want to know of an error that servers give for a
// variant that they do not speak. Some just end a delta stream.
func (c *Client) explain(err error, server int) error {
	s := c.server(server)
	hint := status.Code(err) == codes.Unimplemented || strings.Contains(err.Error(), "not implemented") ||
		s.Delta && errors.Is(err, io.EOF)
	if !hint {
		return err
	}
	variant, streams := "state of the world", "an aggregated stream"
	if s.Delta {
		variant = "delta"
	}
	if s.PerType {
		streams = "a stream for each type"
	}
	return fmt.Errorf("%w (the server may not speak the %s variant of the protocol, or not on %s)", err, variant, streams)
}

// configError is the error of a watch that does not begin because of one; nil of nil.
func (c *Client) configError(kind resource.AnyType, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, authority.ErrNoServers):
		err = fmt.Errorf("%w; %s", err, c.otherSources(kind))
	case errors.Is(err, authority.ErrNotCollection), errors.Is(err, authority.ErrGlob), errors.Is(err, authority.ErrList):
		err = fmt.Errorf("%w: %w", ErrCollection, err)
	}
	// ERR-12: the watch does not begin.
	return &ResourceError{Kind: ErrorConfig, Type: kind.TypeURL(), Name: name, NodeID: c.NodeID(), Err: err}
}

// otherSources says what a program can do whose bootstrap has no servers for a name.
func (c *Client) otherSources(kind resource.AnyType) string {
	for _, s := range c.boot.Startup {
		if s.TypeURL == kind.TypeURL() && s.Source != nil {
			return "the bootstrap has a source for what is watched from the start (AtStartup), and a watch may bring one along (FromSource)"
		}
	}
	return "a watch may bring a source along (FromSource)"
}
