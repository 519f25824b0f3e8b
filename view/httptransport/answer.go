package httptransport

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/xdswatch/xdswatch/view/route"
)

// answer is the response that a route gives itself.
func answer(r *http.Request, req *route.Request, found *route.Route) (*http.Response, error) {
	switch found.Action() {
	case route.ActionRedirect:
		location, status := found.Redirect(req)
		return local(r, status, http.Header{"Location": {location}}, nil), nil
	case route.ActionRespond:
		return local(r, found.Response().Status, http.Header{}, found.Response().Body), nil
	default:
		return nil, &Error{http.StatusNotFound, fmt.Errorf("the route does not forward (%v)", found.Action())}
	}
}

// local is a response that no endpoint gave. It has no body where HTTP allows none (RFC 9110, section 6.4.1).
func local(r *http.Request, status int, header http.Header, body []byte) *http.Response {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if status == http.StatusNoContent || status == http.StatusNotModified {
		body = nil
	}
	resp := &http.Response{
		Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)),
		ContentLength: int64(len(body)), Body: http.NoBody,
	}
	if r.Method != http.MethodHead {
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	return resp
}

// ends is what has to be done once a request is over.
type ends []func()

func (all ends) end() {
	for _, f := range all {
		f()
	}
}

// after does it when a body is closed. The body of a switched protocol can be written too.
func (all ends) after(b io.ReadCloser) io.ReadCloser {
	w := &body{ReadCloser: b, over: sync.OnceFunc(all.end)}
	if out, ok := b.(io.Writer); ok {
		return struct {
			*body
			io.Writer
		}{w, out}
	}
	return w
}

type body struct {
	io.ReadCloser
	over func()
}

func (b *body) Close() error {
	defer b.over()
	return b.ReadCloser.Close()
}
