package main

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// placeholder is the number in the name of the resource that all are made of.
const placeholder = 99999999

// canned is all resources of a scenario in wire form, one "resources" entry after another,
// each as long as the next, so that resource i is at [i*size, (i+1)*size).
type canned struct {
	arena  []byte
	size   int
	stamp  int // offset of the stamp in an entry
	ver    int // offset of the six digits of the version in an entry (delta)
	delta  bool
	single int // bytes of the resource itself
}

// build makes the resources of a scenario: one, and copies of it with other names.
func build(sc kit.Scenario) *canned {
	name := kit.Name(placeholder)
	raw, entry := sample(sc, name)
	c := &canned{size: len(entry), delta: sc.Variant == kit.Delta, single: len(raw)}
	c.stamp = bytes.Index(entry, []byte(kit.ZeroStamp))
	if c.delta {
		c.ver = bytes.Index(entry, []byte(version0)) + 1
	}
	at := occurrences(entry, []byte(name[4:12]))
	c.arena = make([]byte, 0, c.size*sc.N)
	for i := range sc.N {
		number := kit.Name(i)[4:12]
		for _, o := range at {
			copy(entry[o:], number)
		}
		c.arena = append(c.arena, entry...)
	}
	return c
}

const version0 = "v000000"

// sample is a resource, and its entry in a response.
func sample(sc kit.Scenario, name string) (raw, entry []byte) {
	var m proto.Message = cluster(name)
	typ := kit.CDS
	if sc.Type == kit.EDSType {
		m, typ = assignment(name, sc.Eps), kit.EDS
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	body := appendString(nil, 1, typ) // google.protobuf.Any
	body = appendString(body, 2, string(raw))
	if sc.Variant == kit.Delta {
		wrapped := appendString(nil, 1, version0) // Resource
		wrapped = appendString(wrapped, 2, string(body))
		body = appendString(wrapped, 3, name)
	}
	return raw, appendString(nil, 2, string(body))
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func occurrences(b, mark []byte) (at []int) {
	for o := 0; ; {
		i := bytes.Index(b[o:], mark)
		if i < 0 {
			return at
		}
		at = append(at, o+i)
		o += i + len(mark)
	}
}

func (c *canned) entry(i int) []byte { return c.arena[i*c.size : (i+1)*c.size] }

// change gives resource i a new stamp (and version) in place.
func (c *canned) change(i int, stamp []byte) {
	e := c.entry(i)
	copy(e[c.stamp:], stamp)
	if c.delta {
		copy(e[c.ver:], stamp[19:])
	}
}

func (c *canned) stampOf(i int) []byte { return c.entry(i)[c.stamp:][:kit.StampLen] }

func (c *canned) version(i int) []byte {
	e := c.entry(i)
	return e[c.ver-1 : c.ver+6]
}

// header is what precedes the resources in a response. The nonce carries the stamp and
// the number of resources for the one client that does not look further (null).
func header(typ string, count int, nonce uint64, stamp []byte) []byte {
	b := make([]byte, 0, 192)
	b = appendString(b, 1, fmt.Sprintf("v%08d", nonce))
	b = appendString(b, 5, fmt.Sprintf("%08d-%s-%08d", nonce, stamp, count))
	return appendString(b, 4, typ)
}
