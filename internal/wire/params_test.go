package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
)

type constraints = discoveryv3.DynamicParameterConstraints

func variant(name string, c *constraints) *discoveryv3.ResourceName {
	return &discoveryv3.ResourceName{Name: name, DynamicParameterConstraints: c}
}

func single(c *discoveryv3.DynamicParameterConstraints_SingleConstraint) *constraints {
	return &constraints{Type: &discoveryv3.DynamicParameterConstraints_Constraint{Constraint: c}}
}

func value(key, value string) *constraints {
	return single(&discoveryv3.DynamicParameterConstraints_SingleConstraint{
		Key: key, ConstraintType: &discoveryv3.DynamicParameterConstraints_SingleConstraint_Value{Value: value},
	})
}

func exists(key string) *constraints {
	return single(&discoveryv3.DynamicParameterConstraints_SingleConstraint{
		Key: key, ConstraintType: &discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists_{
			Exists: &discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists{},
		},
	})
}

func not(c *constraints) *constraints {
	return &constraints{Type: &discoveryv3.DynamicParameterConstraints_NotConstraints{NotConstraints: c}}
}

func and(cs ...*constraints) *constraints {
	list := &discoveryv3.DynamicParameterConstraints_ConstraintList{Constraints: cs}
	return &constraints{Type: &discoveryv3.DynamicParameterConstraints_AndConstraints{AndConstraints: list}}
}

func or(cs ...*constraints) *constraints {
	list := &discoveryv3.DynamicParameterConstraints_ConstraintList{Constraints: cs}
	return &constraints{Type: &discoveryv3.DynamicParameterConstraints_OrConstraints{OrConstraints: list}}
}

var errOracle = errors.New("cannot be evaluated")

// evaluate is what Params.Match is to find, from the generated message.
func evaluate(c *constraints, params map[string]string, depth int) (ok bool, err error) {
	if depth > maxDepth || len(c.ProtoReflect().GetUnknown()) > 0 {
		return false, errOracle
	}
	all := func(list *discoveryv3.DynamicParameterConstraints_ConstraintList) (fulfilled int, err error) {
		for _, c := range list.GetConstraints() {
			ok, e := evaluate(c, params, depth+1)
			if err = errors.Join(err, e); ok {
				fulfilled++
			}
		}
		return fulfilled, err
	}
	switch t := c.GetType().(type) {
	case *discoveryv3.DynamicParameterConstraints_Constraint:
		v, has := params[t.Constraint.GetKey()]
		switch kind := t.Constraint.GetConstraintType().(type) {
		case *discoveryv3.DynamicParameterConstraints_SingleConstraint_Value:
			return has && v == kind.Value, nil
		case *discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists_:
			return has, nil
		}
		return false, errOracle
	case *discoveryv3.DynamicParameterConstraints_OrConstraints:
		n, err := all(t.OrConstraints)
		return n > 0, err
	case *discoveryv3.DynamicParameterConstraints_AndConstraints:
		n, err := all(t.AndConstraints)
		return n == len(t.AndConstraints.GetConstraints()), err
	case *discoveryv3.DynamicParameterConstraints_NotConstraints:
		ok, err := evaluate(t.NotConstraints, params, depth+1)
		return !ok, err
	}
	return true, nil
}

// constraintsOf is nil without any.
func constraintsOf(n *discoveryv3.ResourceName) []byte {
	if n.GetDynamicParameterConstraints() == nil {
		return nil
	}
	b, err := proto.Marshal(n.GetDynamicParameterConstraints())
	if err != nil {
		panic(err)
	}
	return append([]byte{}, b...)
}

func isConstraints(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && f.Name() == "Constraints" && f.Type() == reflect.TypeFor[[]byte]() ||
		p.Index(-2).String() == ".Constraints" && p.Last().Type() == reflect.TypeFor[[]byte]()
}

// sameConstraints compares what two encodings say, and whether there is one.
func sameConstraints(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return (a == nil) == (b == nil)
	}
	var x, y constraints
	return (a == nil) == (b == nil) && proto.Unmarshal(a, &x) == nil && proto.Unmarshal(b, &y) == nil && proto.Equal(&x, &y)
}

// spec: DYN-2
func TestMatch(t *testing.T) {
	prod, v1 := map[string]string{"env": "prod"}, map[string]string{"env": "prod", "version": "v1"}
	tests := []struct {
		name   string
		c      *constraints
		params map[string]string
		want   bool
	}{
		{"none", &constraints{}, nil, true},
		{"none, with parameters", &constraints{}, prod, true},
		{"value", value("env", "prod"), prod, true},
		{"other value", value("env", "test"), prod, false},
		{"value without parameters", value("env", "prod"), nil, false},
		{"empty value", value("env", ""), nil, false},
		{"value that is empty", value("env", ""), map[string]string{"env": ""}, true},
		{"keys that are not spoken of", value("env", "prod"), v1, true},
		{"a key that is not there", value("version", "v1"), prod, false},
		{"exists", exists("env"), prod, true},
		{"exists with an empty value", exists("env"), map[string]string{"env": ""}, true},
		{"exists not", exists("env"), nil, false},
		{"not", not(value("env", "prod")), prod, false},
		{"not another", not(value("env", "test")), prod, true},
		{"not exists", and(value("env", "prod"), not(exists("version"))), prod, true},
		{"not exists, but does", and(value("env", "prod"), not(exists("version"))), v1, false},
		{"not nothing", not(&constraints{}), prod, false},
		{"and", and(value("env", "prod"), value("version", "v1")), v1, true},
		{"and, one fails", and(value("env", "prod"), value("version", "v2")), v1, false},
		{"and of none", and(), prod, true},
		{"or", or(value("env", "test"), value("env", "prod")), prod, true},
		{"or, all fail", or(value("env", "test"), value("env", "qa")), prod, false},
		{"or of none", or(), prod, false},
		{"within each other", not(or(and(exists("env"), value("version", "v2")), not(exists("version")))), v1, true},
	}
	for _, tt := range tests {
		b := marshal(t, tt.c)
		if got := NewParams(tt.params).Match(b); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if oracle, err := evaluate(tt.c, tt.params, 0); oracle != tt.want || err != nil {
			t.Errorf("%s: the test's own evaluation says %v, %v", tt.name, oracle, err)
		}
	}
	for name, b := range map[string][]byte{
		"too deep":                       appendDeep(1_000_000),
		"of an unknown kind":             []byte(str(9, "x")),
		"an unknown kind beside another": []byte(str(3, str(1, str(9, "x"))+str(1, ""))),
		"without a kind":                 marshal(t, single(nil)),
		"no message":                     {0xff},
		"a key that is no text":          []byte(str(1, str(1, "\xff")+str(3, ""))),
		"a number":                       []byte(num(1, 1)),
	} {
		if NewParams(prod).Match(b) || NewParams(prod).Match(append([]byte(str(4, string(b))), 0)) {
			t.Errorf("constraints %s are fulfilled", name)
		}
	}
}

// appendDeep nests constraints.
func appendDeep(depth int) (b []byte) {
	// Built from the outside, with lengths that take as many bytes each.
	const header = 1 + 5
	for i := range depth {
		size := (depth - i - 1) * header
		b = append(b, 4<<3|2, byte(size)|0x80, byte(size>>7)|0x80, byte(size>>14)|0x80, byte(size>>21)|0x80, byte(size>>28))
	}
	return b
}

// FuzzMatch: constraints are evaluated as by the generated code, and no bytes do harm.
func FuzzMatch(f *testing.F) {
	for _, c := range []*constraints{
		{}, value("env", "prod"), exists("env"), not(exists("version")),
		and(value("env", "prod"), or(value("version", "v1"), not(value("version", "")))),
	} {
		f.Add(marshal(f, c))
	}
	f.Add([]byte(str(3, str(1, str(9, "x")))))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c constraints
		if proto.Unmarshal(b, &c) != nil || irregular(b, c.ProtoReflect().Descriptor()) {
			NewParams(map[string]string{"env": "prod"}).Match(b)
			return
		}
		for _, params := range []map[string]string{nil, {"env": "prod"}, {"env": "prod", "version": "v1"}, {"": ""}} {
			want, err := evaluate(&c, params, 0)
			if got := NewParams(params).Match(b); got != (want && err == nil) {
				t.Errorf("%v with %v: %v, want %v, %v", &c, params, got, want, err)
			}
		}
	})
}

// spec: DYN-1
func TestAppendLocators(t *testing.T) {
	params := map[string]string{"env": "prod", "version": ""}
	p := NewParams(params)
	same(t, "state of the world", AppendName(AppendName(nil, "a", p), "b", nil), &discoveryv3.DiscoveryRequest{
		ResourceNames:    []string{"b"},
		ResourceLocators: []*discoveryv3.ResourceLocator{{Name: "a", DynamicParameters: params}},
	}, &discoveryv3.DiscoveryRequest{})
	b := AppendSubscribe(AppendSubscribe(nil, "a", p), "b", nil)
	same(t, "delta", AppendUnsubscribe(AppendUnsubscribe(b, "c", p), "d", nil), &discoveryv3.DeltaDiscoveryRequest{
		ResourceNamesSubscribe: []string{"b"}, ResourceNamesUnsubscribe: []string{"d"},
		ResourceLocatorsSubscribe:   []*discoveryv3.ResourceLocator{{Name: "a", DynamicParameters: params}},
		ResourceLocatorsUnsubscribe: []*discoveryv3.ResourceLocator{{Name: "c", DynamicParameters: params}},
	}, &discoveryv3.DeltaDiscoveryRequest{})
	if NewParams(nil) != nil || NewParams(map[string]string{}) != nil {
		t.Error("no values make parameters")
	}
}

// spec: NODE-5
func TestSetNodeParams(t *testing.T) {
	with := func(params map[string]*xdscorev3.ContextParams) *corev3.Node {
		return &corev3.Node{Id: "n", Cluster: "c", ClientFeatures: []string{"f"}, DynamicParameters: params}
	}
	of := func(pairs ...string) *xdscorev3.ContextParams {
		c := &xdscorev3.ContextParams{Params: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			c.Params[pairs[i]] = pairs[i+1]
		}
		return c
	}
	type params = map[string]*xdscorev3.ContextParams
	tests := []struct {
		name    string
		before  params
		values  map[string]string
		after   params
		changed bool
	}{
		{"first", nil, map[string]string{"b": "2", "a": "1"}, params{"x": of("a", "1", "b", "2")}, true},
		{"beside others", params{"y": of("a", "1")}, map[string]string{"a": ""}, params{"x": of("a", ""), "y": of("a", "1")}, true},
		{"in place of others", params{"x": of("a", "1", "b", "1"), "y": of()}, map[string]string{"a": "2"}, params{"x": of("a", "2"), "y": of()}, true},
		{"the same", params{"x": of("a", "1", "b", "2")}, map[string]string{"b": "2", "a": "1"}, params{"x": of("a", "1", "b", "2")}, false},
		{"none any more", params{"x": of("a", "1"), "y": of("b", "")}, nil, params{"y": of("b", "")}, true},
		{"still none", params{"y": of("b", "")}, map[string]string{}, params{"y": of("b", "")}, false},
	}
	for _, tt := range tests {
		before := marshal(t, with(tt.before))
		kept := string(before)
		b, changed := SetNodeParams(before, "x", tt.values)
		got := &corev3.Node{}
		if err := proto.Unmarshal(b, got); err != nil || changed != tt.changed {
			t.Errorf("%s: %v, changed: %v", tt.name, err, changed)
		}
		if diff := cmp.Diff(with(tt.after), got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if string(before) != kept {
			t.Errorf("%s: the node was written to", tt.name)
		}
	}
	if b, changed := SetNodeParams([]byte{0xff}, "x", map[string]string{"a": "1"}); string(b) != "\xff" || changed {
		t.Errorf("a node that does not parse becomes %x, changed: %v", b, changed)
	}
}
