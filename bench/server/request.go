package main

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// request is what the server looks at in either kind of discovery request.
type request struct {
	each    func(name []byte)          // hears of each name; may be nil
	initial func(name, version []byte) // of each version that the client has; may be nil

	nonce []byte
	names int // subscribed
	gone  int // unsubscribed
	inits int // initial_resource_versions
	nack  []byte
}

// fields are numbers of a request's fields; 0 for what it does not have.
type fields struct{ names, gone, initial, nonce, fault protowire.Number }

var (
	sotwFields  = fields{names: 3, nonce: 5, fault: 6}
	deltaFields = fields{names: 3, gone: 4, initial: 5, nonce: 6, fault: 7}
)

var errRequest = errors.New("the request does not parse")

// scan walks one request.
func (r *request) scan(b []byte, delta bool) error {
	f := sotwFields
	if delta {
		f = deltaFields
	}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.BytesType {
			return fmt.Errorf("%w: field %d of wire type %d", errRequest, field, kind)
		}
		v, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return errRequest
		}
		b = b[n+m:]
		r.take(&f, field, v)
	}
	return nil
}

func (r *request) take(f *fields, field protowire.Number, v []byte) {
	switch field {
	case f.names:
		r.names++
		if r.each != nil {
			r.each(v)
		}
	case f.gone:
		r.gone++
	case f.nonce:
		r.nonce = v
	case f.fault:
		r.nack = v
	case f.initial:
		r.inits++
		if r.initial != nil && len(v) > 2 {
			r.initial(pair(v))
		}
	}
}

// pair splits an entry of a map of strings, in which both are shorter than 128 bytes.
func pair(v []byte) (key, value []byte) {
	key, rest := v[2:2+v[1]], v[2+v[1]:]
	return key, rest[2 : 2+rest[1]]
}
