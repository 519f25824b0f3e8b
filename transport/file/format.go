package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"unicode/utf8"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// format is how a file is written.
type format uint8

const (
	formatUnknown format = iota // the content decides
	formatBinary
	formatText
	formatJSON
	formatYAML
)

func (f format) String() string {
	return [...]string{"unknown", "binary", "text", "JSON", "YAML"}[f]
}

// formatOf knows the suffixes of Envoy, and others that are common.
func formatOf(path string) format {
	switch filepath.Ext(path) {
	case ".pb":
		return formatBinary
	case ".pb_text", ".pbtxt", ".txtpb", ".textproto", ".prototext":
		return formatText
	case ".json":
		return formatJSON
	case ".yaml", ".yml":
		return formatYAML
	}
	return formatUnknown
}

var (
	byteOrderMark = []byte("\uFEFF")
	errNoResource = errors.New("the Resource holds no resource")
)

// parsing is one file on its way to content.
type parsing struct {
	ctx    context.Context // ends the conversion
	config *Config
	data   []byte
	sum    [sha256.Size]byte
	old    *content // what was read before; nil for nothing
}

// parse makes the content of a file's bytes, which it keeps.
func parse(ctx context.Context, path string, data []byte, sum [sha256.Size]byte, old *content, config *Config) (*content, error) {
	p := &parsing{ctx: ctx, config: config, data: data, sum: sum, old: old}
	f := formatOf(path)
	if f != formatBinary {
		p.data = bytes.TrimPrefix(data, byteOrderMark)
		if len(bytes.TrimSpace(p.data)) == 0 {
			return nil, ErrEmpty
		}
	}
	if len(p.data) == 0 {
		return nil, ErrEmpty
	}
	if f != formatUnknown {
		return p.as(f)
	}
	return p.guess()
}

func (p *parsing) as(f format) (*content, error) {
	switch f {
	// FILE-1: in four forms.
	case formatBinary:
		return p.binary()
	case formatText:
		return p.text()
	case formatJSON:
		return p.json()
	case formatYAML, formatUnknown:
	}
	return p.yaml()
}

// guess tries what the bytes may be. If they are nothing, the likeliest's error is told.
func (p *parsing) guess() (*content, error) {
	var guesses []format
	switch first := bytes.TrimSpace(p.data)[0]; {
	case !printable(p.data):
		guesses = []format{formatBinary}
	case first == '{':
		guesses = []format{formatJSON, formatYAML, formatBinary}
	default:
		guesses = []format{formatYAML, formatText, formatBinary}
	}
	var fault error
	for _, f := range guesses {
		c, err := p.as(f)
		if err == nil {
			return c, nil
		}
		if err == errStopped {
			return nil, err
		}
		if fault == nil {
			fault = err
		}
	}
	return nil, fault
}

// printable says whether bytes may be a text.
func printable(data []byte) bool {
	for _, b := range data {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' {
			return false
		}
	}
	return utf8.Valid(data)
}

// binary passes a DiscoveryResponse on as it is. A Resource has a string where the response
// has the bool canary; without one, the two read alike.
func (p *parsing) binary() (*content, error) {
	const canary = 3
	for b := p.data; len(b) > 0; {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			break
		}
		if num == canary && typ == protowire.BytesType {
			r := &discoveryv3.Resource{}
			if err := proto.Unmarshal(p.data, r); err != nil {
				return nil, &SyntaxError{Format: formatBinary.String(), Entry: -1, Err: err}
			}
			return ofResource(r, p.sum, formatBinary.String())
		}
		b = b[n:]
	}
	return ofBody(p.data, p.sum, formatBinary.String())
}
