package resource_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// What cannot work fails where it is made, with a text that says what is wrong.
// spec: U-13
func TestCustomPanics(t *testing.T) {
	decode := func(resource.Source, []byte) (int, error) { return 0, nil }
	for want, make := range map[string]func(){
		`the type URL "test.Foo" is not`:                            func() { resource.Custom("test.Foo", resource.Options{}, decode) },
		`the type URL "type.googleapis.com/" is not`:                func() { resource.Custom(resource.TypePrefix, resource.Options{}, decode) },
		"the decoder is nil":                                        func() { resource.Custom[int](resource.TypePrefix+"test.Foo", resource.Options{}, nil) },
		"-1 is not the number of a field":                           func() { resource.Custom(resource.TypePrefix+"test.Foo", resource.Options{NameField: -1}, decode) },
		"field 33 of envoy.config.cluster.v3.Cluster is no string":  func() { resource.Proto[*clusterv3.Cluster](resource.Options{NameField: 33}) },
		"field 999 of envoy.config.cluster.v3.Cluster is no string": func() { resource.Proto[*clusterv3.Cluster](resource.Options{NameField: 999}) },
		"-2 is not the number of a field":                           func() { resource.Proto[*clusterv3.Cluster](resource.Options{NameField: -2}) },
		"the check is nil":                                          func() { resource.With(cds.Type, nil) },
		"the conversion is nil":                                     func() { resource.Map[*clusterv3.Cluster, int](cds.Type, nil) },
		"the type is nil":                                           func() { resource.Map(nil, func(int) (int, error) { return 0, nil }) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			make()
		}()
	}
}

// A derived type has the options of its own, and refuses or converts values that are good
// otherwise.
// spec: U-18
func TestDerived(t *testing.T) {
	errSmall := errors.New("too small")
	checked := resource.With(cds.Type, func(c *clusterv3.Cluster) error {
		if len(c.GetName()) < 2 {
			return errSmall
		}
		return nil
	})
	short := resource.Map(checked, func(c *clusterv3.Cluster) (string, error) { return c.GetName()[:2], nil })
	for _, typ := range []resource.AnyType{checked, short} {
		sotw, delta := typ.Methods()
		wantSotW, wantDelta := cds.Type.Methods()
		if typ.TypeURL() != cds.Type.TypeURL() || !typ.FullState() || typ.NameField() != cds.Type.NameField() || sotw != wantSotW || delta != wantDelta {
			t.Errorf("%T has other options than what it is derived from", typ)
		}
	}
	for name, want := range map[string]error{"a": errSmall, "abc": nil} {
		b, err := proto.Marshal(&clusterv3.Cluster{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := short.Decode(resource.Source{}, b); !errors.Is(err, want) || err == nil && v != "ab" {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	if _, err := short.Decode(resource.Source{}, []byte("\xff")); err == nil {
		t.Error("what does not parse is converted")
	}
}
