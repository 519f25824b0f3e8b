package grpcrules

import (
	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// filterKind is an HTTP filter that gRPC has.
type filterKind uint8

const (
	unknownFilter filterKind = iota
	faultFilter              // of clients
	rbacFilter               // of servers
	routerFilter             // of both, terminal
)

// kindOf finds a filter by the type of its configuration. typed says that it is a TypedStruct, whose
// content no filter of gRPC reads. ok is false if that is not one.
func (j *judge) kindOf(path string, a *anypb.Any) (kind filterKind, typed, ok bool) {
	url := a.GetTypeUrl()
	old, now := &udpatypev1.TypedStruct{}, &xdstypev3.TypedStruct{}
	switch {
	case a.MessageIs(now):
		if !j.read(path, a, now) {
			return unknownFilter, true, false
		}
		url, typed = now.GetTypeUrl(), true
	case a.MessageIs(old):
		if !j.read(path, a, old) {
			return unknownFilter, true, false
		}
		url, typed = old.GetTypeUrl(), true
	}
	is := &anypb.Any{TypeUrl: url}
	switch {
	case isA(is, &faultv3.HTTPFault{}):
		kind = faultFilter
	case isA(is, &rbacv3.RBAC{}), isA(is, &rbacv3.RBACPerRoute{}):
		kind = rbacFilter
	case isA(is, &routerv3.Router{}):
		kind = routerFilter
	}
	return kind, typed, true
}

// httpFilters judges the HTTP filters of a connection manager (gRFC A39).
func (j *judge) httpFilters(path string, filters []*hcmv3.HttpFilter, server bool) {
	type used struct {
		path     string
		terminal bool
	}
	var list []used
	names := map[string]bool{}
	faults := len(j.findings)
	for i, f := range filters {
		path := at(path, "httpFilters", i)
		switch {
		case f.GetName() == "":
			j.refuses(RuleHTTPFilterName, path+".name", "the filter has no name")
		case names[f.GetName()]:
			j.refuses(RuleHTTPFilterName, path+".name", "the name is another filter's")
		}
		names[f.GetName()] = true
		if kind := j.httpFilter(path, f, server); kind != unknownFilter {
			list = append(list, used{path, kind == routerFilter})
		}
	}
	if len(list) == 0 {
		if len(j.findings) == faults {
			j.refuses(RuleHTTPFilters, join(path, "httpFilters"), "there is no HTTP filter that gRPC can use")
		}
		return
	}
	last := list[len(list)-1]
	for _, f := range list[:len(list)-1] {
		if f.terminal {
			j.refuses(RuleTerminalFilter, f.path, "the router is not the last filter")
		}
	}
	if !last.terminal {
		j.refuses(RuleTerminalFilter, last.path, "the last filter is not the router")
	}
}

// httpFilter judges a filter and returns its kind, or unknownFilter if gRPC does not use it.
func (j *judge) httpFilter(path string, f *hcmv3.HttpFilter, server bool) filterKind {
	a := f.GetTypedConfig()
	kind, typed, ok := j.kindOf(path+".typedConfig", a)
	wrongSide := server && kind == faultFilter || !server && kind == rbacFilter
	switch {
	case !ok:
		return unknownFilter
	case kind == unknownFilter && !f.GetIsOptional():
		j.refuses(RuleHTTPFilterType, path+".typedConfig", "gRPC does not know the filter, and it is not optional")
		return unknownFilter
	case kind == unknownFilter:
		return unknownFilter
	case typed:
		j.refuses(RuleHTTPFilterType, path+".typedConfig", "gRPC does not read the filter's configuration from a TypedStruct")
		return kind
	}
	switch rules := (&rbacv3.RBAC{}); kind {
	case faultFilter:
		j.read(path+".typedConfig", a, &faultv3.HTTPFault{})
	case routerFilter:
		j.read(path+".typedConfig", a, &routerv3.Router{})
	case rbacFilter:
		if !a.MessageIs(rules) {
			j.refuses(RuleHTTPFilterType, path+".typedConfig", "an RBACPerRoute only overrides")
		} else if j.read(path+".typedConfig", a, rules) {
			j.rbac(path+".typedConfig", rules)
		}
	case unknownFilter:
	}
	if wrongSide {
		if !f.GetIsOptional() {
			j.refuses(RuleHTTPFilterType, path+".typedConfig", "gRPC has the filter on the other side only, and it is not optional")
		}
		return unknownFilter
	}
	return kind
}

// override judges what overrides the configuration of a filter.
func (j *judge) override(path string, a *anypb.Any, optional bool) {
	kind, typed, ok := j.kindOf(path, a)
	refuses := func(message string) { j.refuses(RuleFilterOverride, path, message) }
	perRoute := &rbacv3.RBACPerRoute{}
	switch {
	case !ok:
	case kind == unknownFilter:
		if !optional {
			refuses("gRPC does not know the filter, and it is not optional")
		}
	case typed:
		refuses("gRPC does not read the filter's configuration from a TypedStruct")
	case kind == routerFilter:
		refuses("the router cannot be overridden")
	case kind == faultFilter:
		j.read(path, a, &faultv3.HTTPFault{})
	case !a.MessageIs(perRoute):
		refuses("an RBAC filter is overridden by an RBACPerRoute")
	case !j.read(path, a, perRoute):
	case perRoute.GetRbac() == nil: // gRPC panics, and refuses it therefore
		refuses("the RBACPerRoute has no rbac")
	default:
		j.rbac(path+".rbac", perRoute.GetRbac())
	}
}
