// Package jsonscan goes through a JSON text without building anything of it: where members and
// elements stand, and what reading them will cost. It can be cancelled.
package jsonscan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/internal/redact"
)

// Bounds of what converting a value takes, in bytes of memory. An object takes three bytes of
// text, and some hundred as a message.
const (
	// MaxConversion is what converting a value may take however small it is; one that is larger
	// may take maxGrowth times its own size.
	MaxConversion = 32 << 20
	// MaxValue is how many bytes of text a value may have. Its text is in memory up to three
	// times more while it is converted.
	MaxValue = 64 << 20

	maxGrowth  = 8
	objectCost = 160
	memberCost = 24
)

// CostError says that a value has so many parts that they take more than they may.
type CostError struct{ Size, Limit int }

func (e *CostError) Error() string {
	return fmt.Sprintf("a value of %d bytes has so many parts that to convert it takes more than the limit of %d bytes", e.Size, e.Limit)
}

// Faults of the structure.
const (
	notObject = "want an object"
	more      = "something follows the object"
)

// SizeError says that a value is longer than it may be.
type SizeError struct{ Size, Limit int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("a value of %d bytes is longer than the limit of %d bytes", e.Size, e.Limit)
}

// Value is a value in a text.
type Value struct {
	Start, End int
	cost       int
}

// Affordable is nil if converting the value takes what it may.
func (v Value) Affordable() error {
	if size := v.End - v.Start; size > MaxValue {
		return &SizeError{size, MaxValue}
	}
	if limit := max(MaxConversion, maxGrowth*(v.End-v.Start)); v.cost > limit {
		return &CostError{v.End - v.Start, limit}
	}
	return nil
}

// Object calls each for the members of the object that a text is. Its errors are those of each,
// the cause of the context's end, and a [*redact.Fault] with line and column of what is no JSON.
func Object(ctx context.Context, text []byte, each func(key string, v Value) error) error {
	s := scanner{ctx: ctx, text: text}
	if s.space(); s.peek() != '{' {
		if err := s.check(Value{Start: s.at, End: len(text)}); err != nil {
			return err
		}
		return s.fault(s.at, notObject)
	}
	err := s.sequence('}', func() error {
		key, err := s.key()
		if err != nil {
			return err
		}
		v, err := s.member()
		if err != nil {
			return err
		}
		return each(key, v)
	})
	if err != nil {
		return err
	}
	if s.space(); s.at < len(text) {
		return s.fault(s.at, more)
	}
	return nil
}

// List calls each for the elements of a list that [Object] found in a text.
func List(ctx context.Context, text []byte, list Value, each func(i int, v Value) error) error {
	s := scanner{ctx: ctx, text: text[:list.End], at: list.Start, valid: true}
	i := 0
	return s.sequence(']', func() error {
		v, err := s.value()
		if err != nil {
			return err
		}
		i++
		return each(i-1, v)
	})
}

// scanner is at a place of a text.
type scanner struct {
	ctx  context.Context
	text []byte
	at   int

	valid bool // the text is known to be JSON
}

func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// peek is the next character; 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// fault is what is wrong at a place.
func (s *scanner) fault(at int, what string) error {
	f := &redact.Fault{What: what}
	f.Line, f.Column = redact.Position(s.text, int64(at+1))
	return f
}

const (
	endsEarly = "unexpected end of JSON input"
	comma     = "invalid character after a value"
	colon     = "invalid character after object key"
	beginning = "invalid character looking for beginning of object key string"
)

// sequence goes through what stands between brackets, with commas between.
func (s *scanner) sequence(end byte, part func() error) error {
	s.at++ // the bracket
	if s.space(); s.peek() == end {
		s.at++
		return nil
	}
	for {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		if err := part(); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.at++
		case end:
			s.at++
			return nil
		default:
			return s.unexpected(comma)
		}
	}
}

func (s *scanner) unexpected(what string) error {
	if s.at >= len(s.text) {
		return s.fault(len(s.text)-1, endsEarly)
	}
	return s.fault(s.at, what)
}

// key reads a key and the colon behind it.
func (s *scanner) key() (string, error) {
	if s.space(); s.peek() != '"' {
		return "", s.unexpected(beginning)
	}
	v, err := s.value()
	if err != nil {
		return "", err
	}
	var key string
	_ = json.Unmarshal(s.text[v.Start:v.End], &key) // it is a string
	if s.space(); s.peek() != ':' {
		return "", s.unexpected(colon)
	}
	s.at++
	return key, nil
}

// member goes over the value of a member: a list by its elements, between which it can be
// cancelled.
func (s *scanner) member() (Value, error) {
	if s.space(); s.peek() != '[' {
		return s.value()
	}
	list := Value{Start: s.at, cost: objectCost}
	err := s.sequence(']', func() error {
		v, err := s.value()
		list.cost += v.cost + memberCost
		return err
	})
	list.End = s.at
	return list, err
}

// value goes over a value, which is then known to be JSON.
func (s *scanner) value() (Value, error) {
	s.space()
	v := s.skip()
	if err := s.check(v); err != nil {
		return v, err
	}
	s.at = v.End
	return v, nil
}

// check says what is wrong with a value that is no JSON.
func (s *scanner) check(v Value) error {
	switch {
	case s.valid, json.Valid(s.text[v.Start:v.End]):
		return nil
	case v.Start == v.End && v.End < len(s.text):
		return s.fault(v.Start, "invalid character looking for beginning of value")
	}
	var any json.RawMessage
	var se *json.SyntaxError
	if !errors.As(json.Unmarshal(s.text[v.Start:v.End], &any), &se) {
		return s.fault(v.Start, endsEarly)
	}
	return s.fault(v.Start+int(se.Offset)-1, redact.SyntaxJSON(se))
}

// skip finds where a value ends, if it is JSON.
func (s *scanner) skip() Value {
	v := Value{Start: s.at}
	depth, i := 0, s.at
	for i < len(s.text) {
		switch s.text[i] {
		case '"':
			i = endOfString(s.text, i)
			if depth == 0 {
				v.End = i
				return v
			}
			continue
		case '{', '[':
			depth++
			v.cost += objectCost
		case '}', ']':
			if depth--; depth <= 0 {
				v.End = i + 1 + depth // a bracket that closes what is around is not part of it
				return v
			}
		case ',', ' ', '\t', '\r', '\n', ':':
			if depth == 0 {
				v.End = i
				return v
			}
			if s.text[i] == ',' {
				v.cost += memberCost
			}
		}
		i++
	}
	v.End = i
	return v
}

// endOfString is behind the string that begins at a place.
func endOfString(text []byte, at int) int {
	for at++; at < len(text); {
		n := bytes.IndexAny(text[at:min(len(text), at+64)], "\"\\")
		switch {
		case n < 0:
			at = min(len(text), at+64)
		case text[at+n] == '"':
			return at + n + 1
		default:
			at += n + 2
		}
	}
	return len(text)
}
