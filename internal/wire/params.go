package wire

import (
	"errors"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Params are dynamic parameters: by them a client chooses between the variants of a
// resource (xRFC TP2). They are immutable. nil are none.
type Params struct {
	values  map[string]string
	encoded []byte // dynamic_parameters of a ResourceLocator
}

// NewParams keeps the map, which must not change any more. It is nil without values.
func NewParams(values map[string]string) *Params {
	if len(values) == 0 {
		return nil
	}
	const dynamicParameters = 2
	return &Params{values, appendMap(nil, dynamicParameters, values)}
}

// appendMap appends the entries of a map<string, string> in the order of their keys.
func appendMap(b []byte, num protowire.Number, values map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		b = protowire.AppendTag(b, num, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(2+protowire.SizeBytes(len(key))+protowire.SizeBytes(len(value))))
		b = protowire.AppendTag(b, 1, protowire.BytesType)
		b = protowire.AppendString(b, key)
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendString(b, value)
	}
	return b
}

// appendName appends a name to one of two fields: that of plain names, or with parameters
// that of locators.
func (p *Params) appendName(b []byte, name string, plain, locator protowire.Number) []byte {
	// DYN-1: with parameters a name has a field of its own.
	if p == nil {
		b = protowire.AppendTag(b, plain, protowire.BytesType)
		return protowire.AppendString(b, name)
	}
	b = protowire.AppendTag(b, locator, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(name))+len(p.encoded)))
	b = protowire.AppendTag(b, 1, protowire.BytesType)
	b = protowire.AppendString(b, name)
	return append(b, p.encoded...)
}

// Match says whether the parameters fulfil constraints, an encoded
// DynamicParameterConstraints. Parameters that the constraints do not speak of do not count,
// and no constraints are fulfilled by all (xRFC TP2). What does not parse is not fulfilled.
func (p *Params) Match(constraints []byte) bool {
	ok, err := p.evaluate(constraints, 0)
	return ok && err == nil
}

// maxDepth of constraints within constraints.
const maxDepth = 100

var (
	errConstraint = errors.New("a constraint of an unknown kind")
	errDepth      = errors.New("constraints within constraints are too deep")
)

// evaluate looks at all constraints, whatever the first of them say, so that the error does
// not depend on the parameters.
func (p *Params) evaluate(constraints []byte, depth int) (ok bool, err error) {
	if depth > maxDepth {
		return false, errDepth
	}
	ok = true
	err = Fields(constraints, func(num protowire.Number, f Field) error {
		b, err := f.Bytes()
		if err != nil {
			return err
		}
		switch num {
		case 1:
			ok, err = p.single(b)
		case 2:
			_, ok, err = p.list(b, depth)
		case 3:
			ok, _, err = p.list(b, depth)
		case 4:
			ok, err = p.evaluate(b, depth+1)
			ok = !ok
		default:
			return errConstraint
		}
		return err
	})
	return ok, err
}

// list evaluates a ConstraintList: all of none are fulfilled, and any of none is not.
func (p *Params) list(b []byte, depth int) (all, some bool, err error) {
	all = true
	err = Fields(b, func(num protowire.Number, f Field) error {
		if num != 1 {
			return nil
		}
		b, err := f.Bytes()
		if err != nil {
			return err
		}
		ok, err := p.evaluate(b, depth+1)
		all, some = all && ok, some || ok
		return err
	})
	return all, some, err
}

// single evaluates a SingleConstraint: a key has a value, or exists.
func (p *Params) single(b []byte) (bool, error) {
	var key, value []byte
	var kind protowire.Number
	err := Fields(b, func(num protowire.Number, f Field) (err error) {
		switch num {
		case 1:
			key, err = f.string()
		case 2:
			kind = num
			value, err = f.string()
		case 3:
			kind = num
			_, err = f.Bytes()
		}
		return err
	})
	if err == nil && kind == 0 {
		err = errConstraint
	}
	if err != nil || p == nil {
		return false, err
	}
	v, exists := p.values[string(key)]
	return exists && (kind == 3 || v == string(value)), nil
}
