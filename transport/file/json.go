package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/redact"
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
	line int // of the file; 0 if not known
}

// Keys that tell the two messages apart.
const (
	keyResources = "resources" // of a DiscoveryResponse
	keyResource  = "resource"  // of a Resource
)

func (p *parsing) json() (*content, error) {
	d := &document{format: formatJSON}
	if err := d.split(p.data); err != nil {
		return nil, err
	}
	return p.convert(d)
}

// split takes the top level of an object apart.
func (d *document) split(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	err := d.splitObject(dec, data)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errMore
		}
	}
	if err == nil {
		return nil
	}
	at := dec.InputOffset() + 1
	var whole json.RawMessage
	var se *json.SyntaxError
	if errors.As(json.Unmarshal(data, &whole), &se) { // which knows where it is
		at = se.Offset
		if !errors.Is(err, errMore) {
			err = errors.New(redact.SyntaxJSON(se))
		}
	}
	line, column := redact.Position(data, at)
	return &SyntaxError{Format: d.format.String(), Line: line, Column: column, Entry: -1, Err: err}
}

var (
	errNotObject = errors.New("want an object")
	errMore      = errors.New("something follows the object")
	errTwice     = errors.New("a key is there twice")
)

func (d *document) splitObject(dec *json.Decoder, data []byte) error {
	if t, err := dec.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return errNotObject
	}
	d.rest = []byte{'{'}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string) // the decoder sees to it
		if seen[key] {
			return errTwice
		}
		seen[key] = true
		if err := d.splitMember(dec, data, key); err != nil {
			return err
		}
	}
	d.rest = append(d.rest, '}')
	_, err := dec.Token()
	return err
}

func (d *document) splitMember(dec *json.Decoder, data []byte, key string) error {
	ahead := bytes.TrimLeft(data[dec.InputOffset():], ": \t\r\n")
	if key == keyResources && len(ahead) > 0 && ahead[0] == '[' {
		return d.splitEntries(dec, data)
	}
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return err
	}
	d.member(key, value)
	return nil
}

// splitEntries takes a list apart.
func (d *document) splitEntries(dec *json.Decoder, data []byte) error {
	if _, err := dec.Token(); err != nil {
		return err
	}
	counted := dec.InputOffset()
	line := lineOf(data, counted)
	for dec.More() {
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		start := dec.InputOffset() - int64(len(value))
		line += bytes.Count(data[counted:start], []byte{'\n'})
		counted = start
		d.entries = append(d.entries, jsonEntry{text: value, line: line})
	}
	_, err := dec.Token()
	return err
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
