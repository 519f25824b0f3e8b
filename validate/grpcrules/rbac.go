package grpcrules

//lint:file-ignore SA1019 gRPC reads deprecated fields too

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	udpatypev1 "github.com/cncf/xds/go/udpa/type/v1"
	xdstypev3 "github.com/cncf/xds/go/xds/type/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	auditv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rbac/audit_loggers/stream/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// rbac judges an RBAC filter. With the action LOG, gRPC takes it as if there were none, but for
// conditions and names of headers (gRFC A41).
func (j *judge) rbac(path string, f *rbacv3.RBAC) {
	rules := f.GetRules()
	path = join(path, "rules")
	enforced := rules != nil && rules.GetAction() != rbacconfigv3.RBAC_LOG
	if enforced && rules.GetAction() != rbacconfigv3.RBAC_ALLOW && rules.GetAction() != rbacconfigv3.RBAC_DENY {
		j.refuses(RuleRBAC, path+".action", "the action is not known")
	}
	policies := rules.GetPolicies()
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		path, p := atKey(path, "policies", name), policies[name]
		if p.GetCondition() != nil || p.GetCheckedCondition() != nil {
			j.refuses(RuleRBAC, path, "there is a condition")
		}
		r := rbacJudge{j, enforced}
		for i, it := range p.GetPermissions() {
			r.permission(at(path, "permissions", i), it)
		}
		for i, it := range p.GetPrincipals() {
			r.principal(at(path, "principals", i), it)
		}
	}
	if enforced {
		for i, l := range rules.GetAuditLoggingOptions().GetLoggerConfigs() {
			j.auditLogger(at(path, "auditLoggingOptions.loggerConfigs", i), l)
		}
	}
}

// auditLogger judges a logger: gRPC has the one of standard output (gRFC A59).
func (j *judge) auditLogger(path string, l *rbacconfigv3.RBAC_AuditLoggingOptions_AuditLoggerConfig) {
	a := l.GetAuditLogger().GetTypedConfig()
	path += ".auditLogger.typedConfig"
	url := ""
	old, now, stdout := &udpatypev1.TypedStruct{}, &xdstypev3.TypedStruct{}, &auditv3.StdoutAuditLog{}
	switch {
	case a.MessageIs(stdout):
		j.read(path, a, stdout)
		return
	case a.MessageIs(now):
		if !j.read(path, a, now) {
			return
		}
		url = now.GetTypeUrl()
	case a.MessageIs(old):
		if !j.read(path, a, old) {
			return
		}
		url = old.GetTypeUrl()
	default:
		j.refuses(RuleRBAC, path, "the audit logger is neither a StdoutAuditLog nor a TypedStruct")
		return
	}
	switch name := url[strings.LastIndexByte(url, '/')+1:]; {
	case name == "":
		j.refuses(RuleRBAC, path, "the audit logger has no name")
	case name != "stdout_logger" && !l.GetIsOptional():
		j.refuses(RuleRBAC, path, "the audit logger is not known, and it is not optional")
	}
}

type rbacJudge struct {
	*judge
	enforced bool // what is matched is judged too, and not only names of headers
}

func (j rbacJudge) unknown(path string) {
	if j.enforced {
		j.refuses(RuleRBAC, path, "gRPC does not know what is matched")
	}
}

func (j rbacJudge) permission(path string, p *rbacconfigv3.Permission) {
	each := func(field string, set *rbacconfigv3.Permission_Set) {
		for i, it := range set.GetRules() {
			j.permission(at(path, field+".rules", i), it)
		}
	}
	switch r := p.GetRule().(type) {
	case *rbacconfigv3.Permission_AndRules:
		each("andRules", r.AndRules)
	case *rbacconfigv3.Permission_OrRules:
		each("orRules", r.OrRules)
	case *rbacconfigv3.Permission_NotRule:
		j.permission(path+".notRule", r.NotRule)
	case *rbacconfigv3.Permission_Header:
		j.headerOf(path+".header", r.Header)
	case *rbacconfigv3.Permission_UrlPath:
		j.text(path+".urlPath.path", r.UrlPath.GetPath())
	case *rbacconfigv3.Permission_DestinationIp:
		j.cidr(path+".destinationIp", r.DestinationIp)
	case *rbacconfigv3.Permission_RequestedServerName:
		j.text(path+".requestedServerName", r.RequestedServerName)
	case *rbacconfigv3.Permission_Any, *rbacconfigv3.Permission_DestinationPort, *rbacconfigv3.Permission_Metadata:
	default:
		j.unknown(path)
	}
}

func (j rbacJudge) principal(path string, p *rbacconfigv3.Principal) {
	each := func(field string, set *rbacconfigv3.Principal_Set) {
		for i, it := range set.GetIds() {
			j.principal(at(path, field+".ids", i), it)
		}
	}
	switch r := p.GetIdentifier().(type) {
	case *rbacconfigv3.Principal_AndIds:
		each("andIds", r.AndIds)
	case *rbacconfigv3.Principal_OrIds:
		each("orIds", r.OrIds)
	case *rbacconfigv3.Principal_NotId:
		j.principal(path+".notId", r.NotId)
	case *rbacconfigv3.Principal_Header:
		j.headerOf(path+".header", r.Header)
	case *rbacconfigv3.Principal_UrlPath:
		j.text(path+".urlPath.path", r.UrlPath.GetPath())
	case *rbacconfigv3.Principal_Authenticated_:
		if name := r.Authenticated.GetPrincipalName(); name != nil {
			j.text(path+".authenticated.principalName", name)
		}
	case *rbacconfigv3.Principal_SourceIp:
		j.cidr(path+".sourceIp", r.SourceIp)
	case *rbacconfigv3.Principal_DirectRemoteIp:
		j.cidr(path+".directRemoteIp", r.DirectRemoteIp)
	case *rbacconfigv3.Principal_RemoteIp:
		j.cidr(path+".remoteIp", r.RemoteIp)
	case *rbacconfigv3.Principal_Any, *rbacconfigv3.Principal_Metadata:
	default:
		j.unknown(path)
	}
}

// headerOf judges a header matcher of an RBAC filter; unlike a route's, its old forms may be empty.
func (j rbacJudge) headerOf(path string, h *routev3.HeaderMatcher) {
	if name := strings.ToLower(h.GetName()); name == ":scheme" || strings.HasPrefix(name, "grpc-") {
		j.refuses(RuleRBAC, path+".name", "the header is :scheme, or begins with grpc-")
	}
	if !j.enforced {
		return
	}
	switch h.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_PrefixMatch, *routev3.HeaderMatcher_SuffixMatch, *routev3.HeaderMatcher_ContainsMatch:
	default:
		j.header(path, h)
	}
}

func (j rbacJudge) cidr(path string, r *corev3.CidrRange) {
	if _, err := netip.ParsePrefix(fmt.Sprintf("%s/%d", r.GetAddressPrefix(), r.GetPrefixLen().GetValue())); err != nil && j.enforced {
		j.refuses(RuleRBAC, path, "it is no range of IP addresses")
	}
}

func (j rbacJudge) text(path string, m *matcherv3.StringMatcher) {
	if j.enforced {
		j.stringMatcher(path, m)
	}
}
