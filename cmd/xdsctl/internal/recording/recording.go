// Package recording keeps the exchange with management servers as lines of JSON, one for each
// request and response, and reads from them what the servers had.
package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// Direction is who sent a message. Its texts are stable.
type Direction string

// The directions.
const (
	Request  Direction = "request"  // of the client
	Response Direction = "response" // of the server
)

// Variant is that of the protocol. Its texts are stable.
type Variant string

// The variants.
const (
	SotW  Variant = "sotw"
	Delta Variant = "delta"
)

// Frame is a line of a recording.
type Frame struct {
	Time      time.Time `json:"time"`
	Direction Direction `json:"direction"`
	Server    string    `json:"server"` // its URI
	Node      string    `json:"node"`   // ID of the client's node
	Stream    int       `json:"stream"` // its number, from 1
	Method    string    `json:"method"` // of gRPC, such as "/envoy.service.….StreamAggregatedResources"
	Variant   Variant   `json:"variant"`
	Type      string    `json:"type"` // URL
	// Message is the request or the response, with secrets redacted; null if the bytes are not one.
	Message json.RawMessage `json:"message"`
}

// Writer writes the frames of a recording. It is safe for concurrent use.
type Writer struct {
	mu      sync.Mutex
	out     io.Writer
	failed  func(error)
	streams int
	frames  atomic.Int64
}

// NewWriter makes a writer, which calls failed when it could not write a line. Nothing is written
// after that.
func NewWriter(out io.Writer, failed func(error)) *Writer { return &Writer{out: out, failed: failed} }

// Frames is how many were written. It does not wait for a write.
func (w *Writer) Frames() int { return int(w.frames.Load()) }

func (w *Writer) nextStream() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams++
	return w.streams
}

// Write writes the frame of a message.
func (w *Writer) Write(f Frame, bytes []byte) {
	f.Message, f.Type = message(f.Direction, f.Variant, bytes)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out == nil {
		return
	}
	f.Time = time.Now().UTC()
	if err := report.WriteLine(w.out, f); err != nil {
		w.out = nil
		w.failed(err)
		return
	}
	w.frames.Add(1)
}

// message is the JSON of a message and its type URL; null if the bytes are none.
func message(d Direction, v Variant, bytes []byte) (text json.RawMessage, typeURL string) {
	var m interface {
		proto.Message
		GetTypeUrl() string
	}
	switch {
	case d == Request && v == SotW:
		m = &discoveryv3.DiscoveryRequest{}
	case d == Request:
		m = &discoveryv3.DeltaDiscoveryRequest{}
	case v == SotW:
		m = &discoveryv3.DiscoveryResponse{}
	default:
		m = &discoveryv3.DeltaDiscoveryResponse{}
	}
	if err := proto.Unmarshal(bytes, m); err != nil {
		return json.RawMessage("null"), ""
	}
	return resourcejson.Options{}.Message(m), m.GetTypeUrl()
}

// variantOf is that of a method, by its name.
func variantOf(method string) Variant {
	if strings.HasPrefix(method[strings.LastIndexByte(method, '/')+1:], "Delta") {
		return Delta
	}
	return SotW
}

// ErrNotRecording says that a text is no recording.
var ErrNotRecording = errors.New("not a recording")

// ErrCut is a fault of a recording whose last line has no end, as of a program that was killed.
var ErrCut = errors.New("the last line of the recording is cut")

// parse reads the frames of a recording. A last line that is cut is left out.
func parse(data []byte) (frames []Frame, cut bool, err error) {
	if err := resources.AffordableText(data); err != nil {
		return nil, false, err
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		var f Frame
		switch {
		case len(bytes.TrimSpace(line)) == 0:
			continue
		case json.Unmarshal(line, &f) == nil && (f.Direction == Request || f.Direction == Response) && f.Variant != "":
			frames = append(frames, f)
		case len(frames) > 0 && line[len(line)-1] != '\n':
			cut = true
		case len(frames) > 0:
			return nil, false, fmt.Errorf("line %d is no frame of a recording", n)
		default:
			return nil, false, ErrNotRecording
		}
	}
	if len(frames) == 0 {
		return nil, false, ErrNotRecording
	}
	return frames, cut, nil
}
