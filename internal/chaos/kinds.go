package chaos

import (
	"errors"
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

	"github.com/xdswatch/xdswatch/internal/inlinekeys"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
)

// kind is a type of resource whose revision can be written into it and read from it.
type kind struct {
	label string
	typ   resource.AnyType
	make  func(name, text string) proto.Message
	text  func(any) string
}

// authority is that of structured names.
const authority = "chaos"

// name is that of the nth resource, member the structured one, and glob covers the latter.
func (k kind) name(n int) string   { return fmt.Sprintf("%s-%d", k.label, n) }
func (k kind) member(n int) string { return strings.TrimSuffix(k.glob(), "*") + k.name(n) }

func (k kind) glob() string {
	return "xdstp://" + authority + "/" + strings.TrimPrefix(k.typ.TypeURL(), resource.TypePrefix) + "/p/*"
}

func kinds() []kind {
	return []kind{
		{"cds", cds.Type, makeCluster, func(v any) string { return v.(*clusterv3.Cluster).GetAltStatName() }},
		{"eds", eds.Type, makeAssignment, func(v any) string {
			return v.(*endpointv3.ClusterLoadAssignment).GetEndpoints()[0].GetLocality().GetZone()
		}},
		{"lds", lds.Type, makeListener, func(v any) string { return v.(*listenerv3.Listener).GetStatPrefix() }},
		{"rds", rds.Type, makeRoute, func(v any) string {
			return v.(*routev3.RouteConfiguration).GetInternalOnlyHeaders()[0]
		}},
	}
}

func makeCluster(name, text string) proto.Message {
	return &clusterv3.Cluster{Name: name, AltStatName: text}
}

func makeAssignment(name, text string) proto.Message {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{
		{Locality: &corev3.Locality{Zone: text}},
	}}
}

func makeListener(name, text string) proto.Message {
	return &listenerv3.Listener{Name: name, StatPrefix: text}
}

func makeRoute(name, text string) proto.Message {
	return &routev3.RouteConfiguration{Name: name, InternalOnlyHeaders: []string{text}}
}

// decodeOnce decodes a resource of each type. The protobuf library keeps what it makes of a type
// for the first of its resources, and that is no growth of a client.
func decodeOnce() error {
	var errs []error
	for _, k := range kinds() {
		m := k.make("a", "1-")
		b, err := proto.Marshal(m)
		errs = append(errs, err, proto.Unmarshal(b, m.ProtoReflect().New().Interface()))
		errs = append(errs, new(inlinekeys.Scanner).Check(k.typ.TypeURL(), b)) // as the client does before it saves
	}
	return errors.Join(errs...)
}

// item is a resource on its way to the server process.
type item struct {
	Kind    int // index into kinds
	Name    string
	Present bool
	Rev     int
	Size    int  // of the padding, in bytes
	Bad     bool // a cluster that validation refuses
}

// message makes the resource. Its text begins with the revision.
func (i item) message(ks []kind) proto.Message {
	m := ks[i.Kind].make(i.Name, fmt.Sprintf("%d-%s", i.Rev, strings.Repeat("x", i.Size)))
	if c, ok := m.(*clusterv3.Cluster); ok && i.Bad {
		c.ConnectTimeout = durationpb.New(-time.Second)
	}
	return m
}

// revision reads what message wrote; -1 if it is not that.
func (k kind) revision(value any) int {
	digits, _, _ := strings.Cut(k.text(value), "-")
	rev, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return rev
}
