package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/jsonscan"
	"github.com/xdswatch/xdswatch/internal/redact"
	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/internal/yamljson"
)

// document is a DiscoveryResponse in JSON, taken apart, so that an entry is only converted
// if it changed; or a Resource, whole.
type document struct {
	format  format
	single  bool   // it is a Resource
	rest    []byte // all but the entries, as an object
	entries []jsonEntry
}

type jsonEntry struct {
	text []byte
	line int   // of the file; 0 if not known
	cost error // why it costs too much; nil if it does not
}

// Keys that tell the two messages apart.
const (
	keyResources = "resources" // of a DiscoveryResponse
	keyResource  = "resource"  // of a Resource
)

func (p *parsing) json() (*content, error) {
	d := &document{format: formatJSON, rest: []byte{'{'}}
	seen := map[string]bool{}
	var list *jsonscan.Value
	err := jsonscan.Object(p.ctx, p.data, func(key string, v jsonscan.Value) error {
		if seen[key] {
			return p.faultAt(v.Start, errTwice)
		}
		if len(seen) == maxKeys {
			return p.faultAt(v.Start, errKeys)
		}
		seen[key] = true
		if key == keyResources && p.data[v.Start] == '[' {
			list = &v
			return nil
		}
		d.member(key, p.data[v.Start:v.End])
		return v.Affordable()
	})
	if err == nil && list != nil {
		err = d.split(p.ctx, p.data, *list)
	}
	var f *redact.Fault
	if errors.As(err, &f) {
		return nil, &SyntaxError{Format: d.format.String(), Line: f.Line, Column: f.Column, Entry: -1, Err: f.WithoutPosition()}
	}
	if err != nil {
		return nil, p.refused(d.format, -1, err)
	}
	d.rest = append(d.rest, '}')
	return p.convert(d)
}

var (
	errNotObject = errors.New("want an object")
	errTwice     = errors.New("a key is there twice")
	errKeys      = fmt.Errorf("more than %d keys", maxKeys)
)

// faultAt is an error at a place of the file.
func (p *parsing) faultAt(at int, err error) error {
	line, column := redact.Position(p.data, int64(at+1))
	return &redact.Fault{Line: line, Column: column, What: err.Error()}
}

// refused is an error of an entry, or of the end of the context, which is no fault of the file.
func (p *parsing) refused(f format, entry int, err error) error {
	if p.ctx.Err() != nil {
		return errStopped
	}
	return &SyntaxError{Format: f.String(), Entry: entry, Err: err}
}

// split takes the list of entries apart. How many there are is known before there is room made
// for any.
func (d *document) split(ctx context.Context, data []byte, list jsonscan.Value) error {
	n, limit := 0, wire.ResourcesIn(len(data))
	err := jsonscan.List(ctx, data, list, func(i int, _ jsonscan.Value) error {
		if n = i + 1; n > limit {
			return fmt.Errorf("more than %d resources are too many for a file of %d bytes", limit, len(data))
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.entries = make([]jsonEntry, 0, n)
	counted, line := list.Start, lineOf(data, int64(list.Start))
	return jsonscan.List(ctx, data, list, func(_ int, v jsonscan.Value) error {
		line += bytes.Count(data[counted:v.Start], []byte{'\n'})
		counted = v.Start
		d.entries = append(d.entries, jsonEntry{text: data[v.Start:v.End], line: line, cost: v.Affordable()})
		return nil
	})
}

// member adds a member to the rest.
func (d *document) member(key string, value []byte) {
	d.single = d.single || key == keyResource
	if len(d.rest) > 1 {
		d.rest = append(d.rest, ',')
	}
	d.rest = yamljson.AppendString(d.rest, key)
	d.rest = append(append(d.rest, ':'), value...)
}

// lineOf is the line of an offset, from 1.
func lineOf(data []byte, at int64) int {
	return 1 + bytes.Count(data[:min(int64(len(data)), max(at, 0))], []byte{'\n'})
}

// convert makes content of a document.
func (p *parsing) convert(d *document) (*content, error) {
	if d.single && len(d.entries) == 0 {
		r := &discoveryv3.Resource{}
		if err := p.unmarshal(d, d.rest, -1, 0, r); err != nil {
			return nil, err
		}
		return ofResource(r, p.sum, d.format.String())
	}
	response := &discoveryv3.DiscoveryResponse{}
	if err := p.unmarshal(d, d.rest, -1, 0, response); err != nil {
		return nil, err
	}
	body, err := deterministic.Marshal(response)
	if err != nil {
		return nil, &SyntaxError{Format: d.format.String(), Entry: -1, Err: err}
	}
	sums, ends := make([][sha256.Size]byte, len(d.entries)), make([]int, len(d.entries)+1)
	ends[0] = len(body)
	for i, e := range d.entries {
		if p.ctx.Err() != nil {
			return nil, errStopped
		}
		if e.cost != nil {
			return nil, &SyntaxError{Format: d.format.String(), Line: e.line, Entry: i, Err: e.cost}
		}
		sums[i] = sha256.Sum256(e.text)
		if body, err = p.appendEntry(body, d, i, sums[i]); err != nil {
			return nil, err
		}
		ends[i+1] = len(body)
	}
	c, err := ofBody(body, p.sum, d.format.String())
	if err != nil {
		return nil, err
	}
	c.entries = make(map[[sha256.Size]byte][]byte, len(sums))
	for i, sum := range sums {
		c.entries[sum] = body[ends[i]:ends[i+1]:ends[i+1]]
	}
	return c, nil
}

// appendEntry appends an entry as a field of the response: as it was last time, if it is
// spelled as then.
func (p *parsing) appendEntry(body []byte, d *document, i int, sum [sha256.Size]byte) ([]byte, error) {
	if p.old != nil {
		if b, ok := p.old.entries[sum]; ok {
			return append(body, b...), nil
		}
	}
	entry := &anypb.Any{}
	if err := p.unmarshal(d, d.entries[i].text, i, d.entries[i].line, entry); err != nil {
		return nil, err
	}
	b, err := deterministic.Marshal(entry)
	if err != nil {
		return nil, &SyntaxError{Format: d.format.String(), Entry: i, Err: err}
	}
	body = protowire.AppendTag(body, responseResources, protowire.BytesType)
	return protowire.AppendBytes(body, b), nil
}

// unmarshal reads a part of the document that begins at a line of the file.
func (p *parsing) unmarshal(d *document, text []byte, entry, line int, m proto.Message) error {
	err := p.config.read(func(types Resolver) error {
		return protojson.UnmarshalOptions{Resolver: types, DiscardUnknown: p.config.IgnoreUnknownFields}.Unmarshal(text, m)
	})
	if err == nil {
		return nil
	}
	f := redact.JSON(err, text, m.ProtoReflect().Descriptor(), p.config.Types)
	e := &SyntaxError{Format: d.format.String(), Entry: entry, Err: f.WithoutPosition()}
	if line > 0 && f.Line > 0 {
		e.Line = line + f.Line - 1
		if f.Line > 1 { // of the first, part stands elsewhere
			e.Column = f.Column
		}
	}
	return e
}
