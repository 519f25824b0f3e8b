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
	resp := &http.Response{Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}}
	var body []byte
	switch found.Action() {
	case route.ActionRedirect:
		location, status := found.Redirect(req)
		resp.StatusCode = status
		resp.Header.Set("Location", location)
	case route.ActionRespond:
		resp.StatusCode, body = found.Response().Status, found.Response().Body
	default:
		return nil, &Error{http.StatusNotFound, fmt.Errorf("the route does not forward (%v)", found.Action())}
	}
	resp.Status = fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	resp.ContentLength = int64(len(body))
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return resp, nil
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
