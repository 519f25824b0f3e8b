package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
)

// kind is a type of resource into which a text can be written, and read from it.
type kind struct {
	label string // begins each name, so that no two types have a name in common
	typ   resource.AnyType
	make  func(name, text string) proto.Message
	text  func(any) string
}

// kinds are all there are. Nothing changes them.
var kinds = [...]kind{
	{"cds", cds.Type, func(name, text string) proto.Message {
		return &clusterv3.Cluster{Name: name, AltStatName: text}
	}, func(v any) string { return v.(*clusterv3.Cluster).GetAltStatName() }},
	{"eds", eds.Type, func(name, text string) proto.Message {
		return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{
			{Locality: &corev3.Locality{Zone: text}},
		}}
	}, func(v any) string {
		return v.(*endpointv3.ClusterLoadAssignment).GetEndpoints()[0].GetLocality().GetZone()
	}},
	{"lds", lds.Type, func(name, text string) proto.Message {
		return &listenerv3.Listener{Name: name, StatPrefix: text}
	}, func(v any) string { return v.(*listenerv3.Listener).GetStatPrefix() }},
	{"rds", rds.Type, func(name, text string) proto.Message {
		return &routev3.RouteConfiguration{Name: name, InternalOnlyHeaders: []string{text}}
	}, func(v any) string { return v.(*routev3.RouteConfiguration).GetInternalOnlyHeaders()[0] }},
}

// authority is that of structured names.
const authority = "chaos"

// name is that of the nth resource, member the structured one, and glob covers the latter.
func (k kind) name(n int) string   { return fmt.Sprintf("%s-%d", k.label, n) }
func (k kind) member(n int) string { return strings.TrimSuffix(k.glob(), "*") + k.name(n) }

func (k kind) glob() string {
	return "xdstp://" + authority + "/" + strings.TrimPrefix(k.typ.TypeURL(), resource.TypePrefix) + "/p/*"
}

// revision reads what fact.message wrote; -1 if it is not that.
func (k kind) revision(value any) int {
	digits, _, _ := strings.Cut(k.text(value), "-")
	rev, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return rev
}

// ask is a name, or a collection, that is asked for.
type ask struct {
	Kind int // index into kinds
	Name string
}

// version is of this state, and of what is bad instead.
func (f *fact) version() string {
	if f.Bad {
		return fmt.Sprint(f.Rev, "bad")
	}
	return fmt.Sprint(f.Rev)
}

// message makes the resource. Its text begins with the revision; what is bad has none.
func (f *fact) message() proto.Message {
	m := kinds[f.Kind].make(f.Name, f.version()+"-"+strings.Repeat("x", f.Size))
	if c, ok := m.(*clusterv3.Cluster); ok && f.Bad {
		c.ConnectTimeout = durationpb.New(-time.Second)
	}
	return m
}
