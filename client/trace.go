package client

import (
	"errors"
	"time"

	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
)

// Trace has functions for what happens between the client and its servers, called in that order,
// also relative to the events of watches of the first authority that is watched at the server.
// Any field may be nil. The functions are called like handlers, one at a time; while one runs,
// events wait, and so does the server's next response.
type Trace struct {
	StreamUp   func(StreamInfo)
	StreamDown func(StreamInfo, error) // nil if the client closed it
	Request    func(RequestInfo)       // a request that is no ACK or NACK
	Response   func(ResponseInfo)
	// Handled says that every handler has returned that the response concerned, and follows its
	// Response unless the stream ends before. Not called for a response that is ignored.
	Handled func(HandledInfo)
	ACK     func(AnswerInfo)
	NACK    func(AnswerInfo)
}

// StreamInfo names a stream.
type StreamInfo struct {
	Server string // URI, as in [Event]
	Type   string // URL, of a stream for one type; else empty
	ID     uint64 // differs between the streams of a client
}

// RequestInfo is a request that changes subscriptions.
type RequestInfo struct {
	Stream StreamInfo
	Type   string // URL
	Size   int    // in bytes
	// Omitted is how many requests to the server before this one were not traced: no more than 1024 wait
	// while a handler or a function of Trace runs.
	Omitted int
}

// ResponseInfo is a response.
type ResponseInfo struct {
	Stream    StreamInfo
	Type      string // URL
	Version   string
	Nonce     string
	Resources int
	Size      int  // in bytes
	Ignored   bool // the type was not requested
	// ControlPlane is control_plane.identifier: which of the servers behind an address sent it,
	// if the server says so.
	ControlPlane string
	Received     time.Time // when it came; the function may be called later
}

// HandledInfo is the end of the work on a response.
type HandledInfo struct {
	Stream StreamInfo
	Type   string // URL
	// Valid are the good resources of the response, also those that have not changed; Invalid those
	// that the client refused, and the errors that the server sent in place of resources.
	Valid, Invalid int
	At             time.Time // when the last handler returned
}

// AnswerInfo is the ACK or NACK of a response. It is traced when the client hands it to the
// stream's writer. The client does not answer a file.
type AnswerInfo struct {
	Stream  StreamInfo
	Type    string // URL
	Version string // of the response
	Nonce   string
	Err     error // of a NACK
}

func (c *Client) streamOf(n *machine.Notice) StreamInfo {
	server := c.server(n.Server)
	s := StreamInfo{Server: server.Name(), ID: streamID(n.Stream)}
	if server.PerType {
		s.Type = n.TypeURL
	}
	return s
}

// trace calls the program's functions.
func (c *Client) trace(n engine.Traced) {
	t, s := c.config.Trace, c.streamOf(n.Notice)
	switch n.Kind {
	case machine.NoticeStreamUp:
		traced(c, t.StreamUp, s, s)
	case machine.NoticeStreamDown:
		if t.StreamDown == nil {
			return
		}
		var err error
		if n.Fault != nil {
			err = n.Fault.Err
		}
		traced(c, func(err error) { t.StreamDown(s, err) }, s, err)
	case machine.NoticeRequest:
		traced(c, t.Request, s, RequestInfo{Stream: s, Type: n.TypeURL, Size: n.Size, Omitted: n.Omitted})
	case machine.NoticeEnd:
		traced(c, t.Handled, s, HandledInfo{Stream: s, Type: n.TypeURL, Valid: n.Valid, Invalid: n.Invalid, At: n.At})
	case machine.NoticeResponse:
		traced(c, t.Response, s, ResponseInfo{
			Stream: s, Type: n.TypeURL, Version: n.Version, Nonce: n.Nonce,
			Resources: n.Resources, Size: n.Size, Ignored: n.Ignored, ControlPlane: n.ControlPlane, Received: n.At,
		})
	case machine.NoticeAck, machine.NoticeNack:
		answer, hook := AnswerInfo{Stream: s, Type: n.TypeURL, Version: n.Version, Nonce: n.Nonce}, t.ACK
		if n.Kind == machine.NoticeNack {
			answer.Err, hook = errors.New(n.Message), t.NACK
		}
		if c.server(n.Server).File() == nil {
			traced(c, hook, s, answer)
		}
	}
}

// streamID is one number for the two that tell a stream from others.
func streamID(r machine.Ref) uint64 { return uint64(r.Gen)<<32 | uint64(r.Stream) }

// traced calls a function of Trace, if there is one.
func traced[T any](c *Client, f func(T), s StreamInfo, v T) {
	call(c, "a trace function panicked", s.Server, f, v)
}

// call calls a function of the program, if there is one. Its panic is logged.
func call[T any](c *Client, panicked, server string, f func(T), v T) {
	if f == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.panicked(panicked, server, "", p)
		}
	}()
	f(v)
}
