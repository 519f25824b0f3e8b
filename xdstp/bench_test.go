package xdstp

import (
	"net/netip"
	"strings"
	"testing"
)

const (
	typical = "xdstp://traffic.example.com/envoy.config.endpoint.v3.ClusterLoadAssignment/prod/backend-7?env=prod&zone=eu-1a"
	escaped = "xdstp://traffic.example.com/envoy.config.endpoint.v3.ClusterLoadAssignment/prod%3Abackend?zone=eu-1a&env=prod%26x"
)

func TestAllocations(t *testing.T) {
	name := mustParse(t, typical)
	glob := mustParse(t, "xdstp://a/T/foo/*?a=b")
	context := Context{Attributes: []Param{VIP(netip.IPv6Loopback())}}
	tests := []struct {
		what string
		most float64
		run  func()
	}{
		{"IsXDSTP", 0, func() { _ = IsXDSTP(typical) }},
		{"AuthorityOf", 0, func() { AuthorityOf(typical) }},
		{"IsGlob", 0, func() { IsGlob(typical) }},
		{"Parse", 1, func() { Parse(typical) }},
		{"Parse escaped", 3, func() { Parse(escaped) }},
		{"Canonical", 1, func() { Canonical(typical) }},
		{"String", 1, func() { _ = name.String() }},
		{"Equal", 0, func() { name.Equal(name) }},
		{"Matches", 0, func() { name.Matches(name) }},
		{"IsListCollection", 0, func() { name.IsListCollection(listenerURL) }},
		{"CheckReserved", 0, func() { name.CheckReserved() }},
		{"ParseURN", 1, func() { ParseURN(typical) }},
		{"IsGlob of a name", 0, func() { glob.IsGlob() }},
		{"Apply nothing", 0, func() { Context{}.Apply(name) }},
		{"Apply", 1, func() { context.Apply(name) }},
	}
	for _, tt := range tests {
		if got := testing.AllocsPerRun(100, tt.run); got > tt.most {
			t.Errorf("%s: %v allocations, want at most %v", tt.what, got, tt.most)
		}
	}
}

func BenchmarkIsXDSTP(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		IsXDSTP(typical)
	}
}

func BenchmarkAuthorityOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		AuthorityOf(typical)
	}
}

func BenchmarkParse(b *testing.B) {
	many := strings.Split(typical, "?")[0] + "?h=1&g=2&f=3&e=4&d=5&c=6&b=7&a=8"
	for _, bb := range []struct{ what, name string }{{"typical", typical}, {"escaped", escaped}, {"many", many}} {
		b.Run(bb.what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(bb.name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCanonical(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonical(typical); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkContextApply(b *testing.B) {
	name := mustParse(b, typical)
	context := Context{
		Node:       []Param{{"xds.node.cluster", "c"}, {"xds.node.id", "n"}},
		Attributes: []Param{VIP(netip.IPv6Loopback())},
	}
	b.ReportAllocs()
	for b.Loop() {
		context.Apply(name)
	}
}

func BenchmarkDecodeLocator(b *testing.B) {
	l, err := ParseLocator(typical)
	if err != nil {
		b.Fatal(err)
	}
	m, err := l.Proto()
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		what  string
		bytes []byte
	}{{"message", marshal(b, m)}, {"string", []byte(field(1, typical))}, {"text", []byte(typical)}} {
		b.Run(bb.what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeLocator(bb.bytes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkProto(b *testing.B) {
	name := mustParse(b, typical)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := name.Proto(); err != nil {
			b.Fatal(err)
		}
	}
}
