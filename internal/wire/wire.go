// Package wire holds the machine's small view of discovery requests and responses, with a
// scanner and an appender for their wire form. Nothing is unmarshalled: a response's
// payloads are slices of the received frame, or of the copy of an entry that came in parts.
package wire

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Response is a DiscoveryResponse or DeltaDiscoveryResponse. Its byte slices are parts of the
// frame it was scanned from, as far as an entry came in one piece.
type Response struct {
	Version      string // version_info, or delta's system_version_info
	TypeURL      string
	Nonce        string
	ControlPlane string // control_plane.identifier
	Resources    []Resource
	Constraints  [][]byte // of entries that have any; see Resource.Variant
	Removed      [][]byte // names; delta only
	RemovedNames []ResourceName
	Errors       []ResourceError
	Renewed      map[int]bool // indices of resources that are new though their bytes are not
	Size         int          // of the frame, in bytes

	cost int // of what was scanned, in bytes
}

// Resource is one entry of a response.
type Resource struct {
	Name    []byte // as the wrapper says; nil if it does not
	Version []byte // the resource's own; delta only
	TypeURL []byte // of the payload
	Payload []byte // the bytes of the inner Any
	TTL     time.Duration
	Variant int32 // which of Response.Constraints are its own, from 1; 0 for none
	HasTTL  bool
	HasBody bool  // the entry holds an Any
	Fault   error // why the entry could not be read; Name may be known all the same

	Attributes *Attributes // nil if it says none
}

// ResourceName names a variant of a resource (xRFC TP2).
type ResourceName struct {
	Name        []byte
	Constraints []byte // an encoded DynamicParameterConstraints; nil if there are none
}

// ResourceError is an entry of resource_errors (xRFC TP3).
type ResourceError struct {
	ResourceName
	Code    int32 // of google.rpc.Status
	Message string
}

// WrapperURL is the type URL of the Resource message that may wrap entries in state of
// the world responses.
const WrapperURL = "type.googleapis.com/envoy.service.discovery.v3.Resource"

var (
	errUTF8      = errors.New("a string is not valid UTF-8")
	errTruncated = errors.New("the bytes end inside a field")
	errWireType  = errors.New("a field has the wrong wire type")
)

// ScanSotW reads a DiscoveryResponse, given in parts that stand one after another.
func ScanSotW(frame ...[]byte) (*Response, error) {
	r := &Response{}
	if err := r.ScanSotW(frame...); err != nil {
		return nil, err
	}
	return r, nil
}

// ScanDelta reads a DeltaDiscoveryResponse, given in parts that stand one after another.
func ScanDelta(frame ...[]byte) (*Response, error) {
	r := &Response{}
	if err := r.ScanDelta(frame...); err != nil {
		return nil, err
	}
	return r, nil
}

// scan forgets what was scanned before, but for the room that it took, and calls each for
// the fields of a response.
func (r *Response) scan(frame [][]byte, costs []int, each func(protowire.Number, Field) error) error {
	*r = Response{Resources: r.Resources[:0]}
	for _, part := range frame {
		r.Size += len(part)
	}
	frame = align(frame)
	entries, err := r.admit(frame, costs)
	if err != nil {
		return err
	}
	if cap(r.Resources) < entries {
		r.Resources = make([]Resource, 0, entries)
	}
	for _, part := range frame {
		if err := Fields(part, each); err != nil {
			return err
		}
	}
	return nil
}

// ScanSotW reads a DiscoveryResponse in place of what was scanned before.
func (r *Response) ScanSotW(frame ...[]byte) error {
	err := r.scan(frame, sotwCosts, func(num protowire.Number, f Field) (err error) {
		switch num {
		case 1:
			r.Version, err = f.text()
		case 2:
			var any []byte
			if any, err = f.Bytes(); err == nil {
				err = r.keep(r.scanAny(any))
			}
		case 4:
			r.TypeURL, err = f.text()
		case 5:
			r.Nonce, err = f.text()
		case 6:
			err = r.scanControlPlane(f)
		case 7:
			err = r.scanError(f)
		}
		return err
	})
	return scanError("DiscoveryResponse", err)
}

// ScanDelta reads a DeltaDiscoveryResponse in place of what was scanned before.
func (r *Response) ScanDelta(frame ...[]byte) error {
	err := r.scan(frame, deltaCosts, func(num protowire.Number, f Field) (err error) {
		switch num {
		case 1:
			r.Version, err = f.text()
		case 2:
			var b []byte
			if b, err = f.Bytes(); err == nil {
				err = r.keep(r.scanWrapper(b))
			}
		case 4:
			r.TypeURL, err = f.text()
		case 5:
			r.Nonce, err = f.text()
		case 6:
			var name []byte
			if name, err = f.string(); err == nil {
				r.Removed = append(r.Removed, name)
				err = r.ChargeName(name)
			}
		case 7:
			err = r.scanControlPlane(f)
		case 8:
			var name ResourceName
			if name, err = f.resourceName(); err == nil {
				r.RemovedNames = append(r.RemovedNames, name)
				err = r.ChargeName(name.Name)
			}
		case 9:
			err = r.scanError(f)
		}
		return err
	})
	return scanError("DeltaDiscoveryResponse", err)
}

// scanError says what is wrong with a response: it is none, or it costs too much.
func scanError(message string, err error) error {
	if err == nil {
		return nil
	}
	var cost *OverheadError
	var count *CountError
	if errors.As(err, &cost) || errors.As(err, &count) {
		return err
	}
	return fmt.Errorf("not a %s: %w", message, err)
}

// keep takes an entry. What is wrong with it takes memory too.
func (r *Response) keep(e Resource) (err error) {
	if e.Fault != nil {
		err = r.charge(faultCost)
	}
	r.Resources = append(r.Resources, e)
	return err
}

func (r *Response) scanControlPlane(f Field) error {
	b, err := f.Bytes()
	if err != nil {
		return err
	}
	id, _, err := StringField(b, 1)
	if len(id) > MaxText {
		return errText
	}
	r.ControlPlane = string(id)
	return err
}

func (r *Response) scanError(f Field) error {
	b, err := f.Bytes()
	if err != nil {
		return err
	}
	var e ResourceError
	err = Fields(b, func(num protowire.Number, f Field) (err error) {
		switch num {
		case 1:
			if e.ResourceName, err = f.resourceName(); err == nil {
				err = r.ChargeName(e.ResourceName.Name)
			}
		case 2:
			e.Code, e.Message, err = f.status()
		}
		return err
	})
	r.Errors = append(r.Errors, e)
	return err
}

// scanAny reads an entry of a DiscoveryResponse: an Any, which may hold a Resource.
func (r *Response) scanAny(b []byte) Resource {
	url, value, err := splitAny(b)
	if err != nil {
		return Resource{Fault: err}
	}
	// TYPE-5: a wrapper is opened, whatever the response's type.
	if string(url) == WrapperURL {
		return r.scanWrapper(value)
	}
	return Resource{TypeURL: url, Payload: value, HasBody: true}
}

// scanWrapper reads a Resource. A fault keeps the name if it was read before it, or if the
// fault is in the Any.
func (r *Response) scanWrapper(b []byte) Resource {
	var e Resource
	var variant ResourceName
	many := false
	err := Fields(b, func(num protowire.Number, f Field) (err error) {
		switch num {
		case 1:
			// H-9: what is kept of a response is bounded.
			if e.Version, err = f.string(); len(e.Version) > MaxText {
				e.Version, err = nil, errText
			}
		case 2:
			err = e.scanBody(f)
		case 3:
			e.Name, err = f.string()
		case 4:
			var alias []byte
			if alias, err = f.string(); err == nil {
				if a := e.attributes(); len(a.Aliases) == MaxAliases {
					many = true
				} else {
					a.Aliases = append(a.Aliases, alias)
					err = cmp.Or(r.charge(nameCost), r.ChargeName(alias))
				}
			}
		case 6:
			err = e.scanTTL(f)
		case 7:
			err = e.scanCacheControl(f)
		case 8:
			variant, err = f.resourceName()
		case 9:
			err = e.scanMetadata(f)
		}
		return err
	})
	if e.Attributes != nil && err == nil {
		err = r.charge(attributeCost)
	}
	if len(e.Name) == 0 {
		e.Name = variant.Name // the two exclude each other
	}
	if len(e.Name) > MaxName {
		e.Name, err = nil, errName
	}
	if err == nil {
		err = r.ChargeName(e.Name)
	}
	if c := variant.Constraints; err == nil && c != nil {
		if _, err = (*Params)(nil).evaluate(c, 0); err == nil {
			err = r.charge(nameCost)
			r.Constraints = append(r.Constraints, c)
			e.Variant = int32(len(r.Constraints))
		}
	}
	if err != nil && e.Fault == nil {
		e.Fault = fmt.Errorf("not a Resource: %w", err)
	}
	if many && e.Fault == nil {
		e.Fault = ErrAliases
	}
	return e
}

// scanBody leaves a broken Any as the entry's fault, so that a name after it is still read.
func (r *Resource) scanBody(f Field) error {
	any, err := f.Bytes()
	if err != nil {
		return err
	}
	r.HasBody = true
	r.TypeURL, r.Payload, r.Fault = splitAny(any)
	return nil
}

func (r *Resource) scanTTL(f Field) error {
	b, err := f.Bytes()
	if err != nil {
		return err
	}
	r.HasTTL = true
	var seconds, nanos int64
	err = Fields(b, func(num protowire.Number, f Field) (err error) {
		var v uint64
		switch num {
		case 1:
			v, err = f.varint()
			seconds = int64(v)
		case 2:
			v, err = f.varint()
			nanos = int64(int32(v))
		}
		return err
	})
	r.TTL = duration(seconds, nanos)
	return err
}

// duration is the value of a google.protobuf.Duration; what cannot be held becomes some
// 136 years of that sign.
func duration(seconds, nanos int64) time.Duration {
	const most = 1 << 32
	return time.Duration(max(-most, min(seconds, most)))*time.Second + time.Duration(nanos)
}

func splitAny(b []byte) (url, value []byte, err error) {
	err = Fields(b, func(num protowire.Number, f Field) (err error) {
		switch num {
		case 1:
			url, err = f.string()
		case 2:
			value, err = f.Bytes()
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("not an Any: %w", err)
	}
	return url, value, err
}

// StringField finds a top-level string field of a message; the last one counts, as in
// proto3. ok is false if there is none. The whole top level is looked at, so that an error
// means that the message does not parse.
func StringField(msg []byte, want protowire.Number) (value []byte, ok bool, err error) {
	err = Fields(msg, func(num protowire.Number, f Field) (err error) {
		if num == want {
			ok = true
			value, err = f.string()
		}
		return err
	})
	return value, ok, err
}

// Field is the value of one field: bytes for length-delimited ones, a number for varints.
type Field struct {
	typ protowire.Type
	b   []byte
	v   uint64
}

// Fields calls each for every top-level field of a message, in order, until one has an error,
// which is returned with the number of the field.
func Fields(b []byte, each func(protowire.Number, Field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errTruncated
		}
		b = b[n:]
		f := Field{typ: typ}
		switch typ {
		case protowire.BytesType:
			f.b, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.v, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return errTruncated
		}
		b = b[n:]
		if err := each(num, f); err != nil {
			return fmt.Errorf("field %d: %w", num, err)
		}
	}
	return nil
}

// Bytes is the value of a length-delimited field, a part of the message; of others an error.
func (f Field) Bytes() ([]byte, error) {
	if f.typ != protowire.BytesType {
		return nil, errWireType
	}
	return f.b, nil
}

func (f Field) varint() (uint64, error) {
	if f.typ != protowire.VarintType {
		return 0, errWireType
	}
	return f.v, nil
}

func (f Field) string() ([]byte, error) {
	b, err := f.Bytes()
	if err == nil && !utf8.Valid(b) {
		return nil, errUTF8
	}
	return b, err
}

// text is a string that is bounded.
func (f Field) text() (string, error) {
	b, err := f.string()
	if len(b) > MaxText {
		return "", errText // H-9
	}
	return string(b), err
}

func (f Field) resourceName() (n ResourceName, err error) {
	b, err := f.Bytes()
	if err != nil {
		return n, err
	}
	err = Fields(b, func(num protowire.Number, f Field) (err error) {
		switch num {
		case 1:
			n.Name, err = f.string()
		case 2:
			n.Constraints, err = f.Bytes()
		}
		return err
	})
	return n, err
}

func (f Field) status() (code int32, message string, err error) {
	b, err := f.Bytes()
	if err != nil {
		return 0, "", err
	}
	err = Fields(b, func(num protowire.Number, f Field) (err error) {
		switch num {
		case 1:
			var v uint64
			v, err = f.varint()
			code = int32(v)
		case 2:
			var b []byte
			b, err = f.string()
			message = strings.ToValidUTF8(string(b[:min(len(b), MaxText)]), "")
		}
		return err
	})
	return code, message, err
}
