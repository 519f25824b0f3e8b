package main

import (
	"bytes"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bench/kit"
)

// Numbers in the name of the resource that all are made of.
const (
	placeholder = 99999999
	someone     = 999 // authority
)

// canned is all resources of a scenario in wire form, one "resources" entry after another,
// each as long as the next, so that resource i is at [i*size, (i+1)*size).
type canned struct {
	arena  []byte
	size   int
	stamp  int // offset of the stamp in an entry
	ver    int // offset of the six digits of the version in an entry (delta)
	delta  bool
	single int // bytes of the resource itself

	// Entries that only give resources their time to live again; the same way in one piece.
	beats    []byte
	beatSize int
}

// build makes the resources of a scenario: one, and copies of it with other names.
func build(sc *kit.Scenario) *canned {
	name, host := kit.Host(placeholder), kit.Host(placeholder)
	if sc.Authorities > 0 {
		name = strings.Replace(sc.Name(0), kit.Host(0), host, 1)
		name = strings.Replace(name, kit.Authority(0), kit.Authority(someone), 1)
	}
	raw, entry := sample(sc, name, host)
	c := &canned{size: len(entry), delta: sc.Variant == kit.Delta, single: len(raw)}
	c.stamp = bytes.Index(entry, []byte(kit.ZeroStamp))
	if c.delta {
		c.ver = bytes.Index(entry, []byte(version0)) + 1
	}
	c.arena = copies(sc, entry)
	if c.delta && sc.TTL > 0 {
		beat := wrap(sc, name, "")
		c.beats, c.beatSize = copies(sc, beat), len(beat)
	}
	return c
}

// copies is an entry for each resource.
func copies(sc *kit.Scenario, entry []byte) []byte {
	numbers := occurrences(entry, []byte(kit.Number(kit.Host(placeholder))))
	authorities := occurrences(entry, []byte(kit.Authority(someone)))
	arena := make([]byte, 0, len(entry)*sc.N)
	for i := range sc.N {
		for _, o := range numbers {
			copy(entry[o:], kit.Number(kit.Host(i)))
		}
		for _, o := range authorities {
			copy(entry[o:], kit.Authority(i*sc.Authorities/sc.N))
		}
		arena = append(arena, entry...)
	}
	return arena
}

const version0 = "v000000"

// sample is a resource, and its entry in a response.
func sample(sc *kit.Scenario, name, host string) (raw, entry []byte) {
	var m proto.Message = cluster(name, host)
	if sc.Type == kit.EDSType {
		m = assignment(name, sc.Eps)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	body := appendString(nil, 1, sc.TypeURL()) // google.protobuf.Any
	body = appendString(body, 2, string(raw))
	if sc.Variant == kit.Delta {
		return raw, wrap(sc, name, string(body))
	}
	return raw, appendString(nil, 2, string(body))
}

// wrap makes the entry of a delta response; without a body it is a heartbeat.
func wrap(sc *kit.Scenario, name, body string) []byte {
	b := appendString(nil, 1, version0) // envoy.service.discovery.v3.Resource
	if body != "" {
		b = appendString(b, 2, body)
	}
	b = appendString(b, 3, name)
	if sc.TTL > 0 {
		seconds := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(sc.TTL))
		b = appendString(b, 6, string(seconds))
	}
	return appendString(nil, 2, string(b))
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

func (c *canned) entry(i int) []byte { return c.entries(i, i+1) }

func (c *canned) entries(from, to int) []byte { return c.arena[from*c.size : to*c.size] }

func (c *canned) heartbeats(from, to int) []byte { return c.beats[from*c.beatSize : to*c.beatSize] }

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
