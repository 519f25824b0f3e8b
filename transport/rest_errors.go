package transport

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/textproto"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// pollError is the end of a poll that failed.
type pollError struct {
	endpoint *restEndpoint
	path     string
	err      error
}

func (e *pollError) Error() string {
	return fmt.Sprintf("POST %s at %s: %s", e.endpoint.base.JoinPath(e.path), e.endpoint.address, describe(e.err))
}

func (e *pollError) Unwrap() error { return e.err }

// statusError is an answer with neither 200 nor 304. The body is told if it is a plain sentence.
type statusError struct{ answer }

func (e *statusError) Error() string {
	text := fmt.Sprintf("the server answers %d %s", e.status, http.StatusText(e.status))
	if isSentence(e.typ, string(e.body)) {
		text += ": " + excerpt(e.body)
	}
	return text
}

// isSentence says that a body may be told: a plain text, as gRPC tells a status message. What has another type may be
// anything, and so may what has more than a line, or brackets and quotes: some servers give resources no type, so that
// package http calls them a plain text.
func isSentence(contentType, body string) bool {
	typ, _, _ := mime.ParseMediaType(contentType)
	body = strings.TrimSpace(body)
	// H-3: it may be a resource.
	return typ == "text/plain" && body != "" && !strings.ContainsAny(body, "{}[]<>\"\r\n")
}

// dialError is why there is no connection. Its text is of this side.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// formError is a response that is not HTTP. Package http quotes it in the error, and it may hold
// anything.
type formError struct {
	text string
	err  error
}

func (e *formError) Error() string { return e.text }
func (e *formError) Unwrap() error { return e.err }

// unquoted is an error of a request without what it quotes of the server.
func unquoted(err error) error {
	if err == nil || errors.As(err, new(*dialError)) || errors.Is(err, errRedirect) {
		return err
	}
	text := err.Error()
	// H-3: errors of package textproto quote a line after a colon, all others in quotes.
	if p := textproto.ProtocolError(""); errors.As(err, &p) {
		kind, _, _ := strings.Cut(string(p), ":")
		text = strings.Replace(text, string(p), kind, 1)
	}
	if said, _, quotes := strings.Cut(text, `"`); quotes {
		text = strings.TrimRight(said, " ,;:=")
	}
	if text == err.Error() {
		return err
	}
	return &formError{text, err}
}

// bodyError is a 200 whose body is no response. It may have been meant for one, with secrets, so
// nothing of it is told.
type bodyError struct {
	answer
	err error
}

func (e *bodyError) Error() string {
	return fmt.Sprintf("the server answers 200 with what is no DiscoveryResponse (%v), content type %q, %d bytes", e.err, excerpt(e.typ), len(e.body))
}

// typeError is a response of another type than the poll's.
type typeError struct{ asked, got string }

func (e *typeError) Error() string {
	return fmt.Sprintf("the server answers with resources of type %q to a poll for %q", excerpt(e.got), e.asked)
}

// excerpt is the beginning of a text that a server sent, on one line.
func excerpt[T string | []byte](from T) string {
	text := strings.ToValidUTF8(string(from[:min(len(from), maxExcerpt)]), "\uFFFD")
	return strings.Join(strings.Fields(text), " ")
}

// restError makes a gRPC status error of what ended a stream.
func restError(c *restConn, err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	var st *statusError
	var body *bodyError
	var typ *typeError
	text := c.sent.hide(err.Error())
	switch {
	case errors.Is(err, errStreamClosed), errors.Is(err, ErrClosed), errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, text)
	case errors.Is(err, errTooLarge):
		return &PollError{http.StatusOK, tooLarge(c.config.MaxReceiveSize, "RESTConfig", text)}
	case errors.Is(err, errRequestTimeout):
		return status.Errorf(codes.DeadlineExceeded, "%s: the request timeout is %v", text, c.rest.RequestTimeout)
	case errors.As(err, &st):
		return &PollError{st.status, status.Error(codeOf(st.status), text)}
	case errors.As(err, &body), errors.As(err, &typ):
		return &PollError{http.StatusOK, status.Error(codes.Internal, text)}
	}
	return status.Error(codes.Unavailable, text)
}

// codeOf is the gRPC code of an HTTP status (gRPC, "HTTP to gRPC Status Code Mapping"),
// and of a request that is too large.
func codeOf(httpStatus int) codes.Code {
	switch httpStatus {
	case http.StatusBadRequest:
		return codes.Internal
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.Unimplemented
	case http.StatusRequestEntityTooLarge:
		return codes.ResourceExhausted
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return codes.Unavailable
	}
	return codes.Unknown
}
