package bootstrap

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
)

// Validate reports all faults of a Config at once, each a [*FieldError] with a path such
// as `Servers[0].URI`; nil if a client can be made of it. It reads no files and does not
// call a Build function. Fields that [Config.WithDefaults] fills may be empty.
func (c *Config) Validate() error {
	var v validator
	if len(c.Servers) == 0 {
		v.noServers(c)
	}
	v.servers("Servers", c.Servers)
	for _, name := range slices.Sorted(maps.Keys(c.Authorities)) {
		a, path := c.Authorities[name], fmt.Sprintf("Authorities[%q]", name)
		if reason := templateFault(name, a.ClientListenerTemplate); reason != "" {
			v.fault(path+".ClientListenerTemplate", shown(a.ClientListenerTemplate), reason)
		}
		v.servers(path+".Servers", a.Servers)
	}
	if reason := c.inheritanceFault(); reason != "" {
		v.fault("Authorities", "", reason)
	}
	v.sources(c)
	v.params("DynamicParameters.Old", c.DynamicParameters.Old)
	for _, name := range slices.Sorted(maps.Keys(c.DynamicParameters.Authorities)) {
		v.params(fmt.Sprintf("DynamicParameters.Authorities[%q]", name), c.DynamicParameters.Authorities[name])
	}
	v.collections(c)
	for _, name := range slices.Sorted(maps.Keys(c.CertificateProviders)) {
		if c.CertificateProviders[name].PluginName == "" {
			v.fault(fmt.Sprintf("CertificateProviders[%q].PluginName", name), "", "required")
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(c.AllowedGRPCServices)) {
		s, path := c.AllowedGRPCServices[uri], fmt.Sprintf("AllowedGRPCServices[%q]", uri)
		v.channelCreds(path+".ChannelCreds", s.ChannelCreds)
		v.callCreds(path+".CallCreds", s.CallCreds)
	}
	return errors.Join(v.faults...)
}

type validator struct{ faults []error }

func (v *validator) fault(path, value, reason string) {
	v.faults = append(v.faults, &FieldError{
		Source: "bootstrap.Config", Path: path, Value: value, Reason: reason,
	})
}

// maxInherited is how many servers the authorities may have in all that list none of their own.
const maxInherited = 1 << 16

// inheritanceFault is what is wrong with how many those are; "" for nothing.
func (c *Config) inheritanceFault() string {
	heirs := 0
	for _, a := range c.Authorities {
		if len(a.Servers) == 0 {
			heirs++
		}
	}
	// H-10: each has all top-level servers, so that a short document could have millions.
	if heirs == 0 || len(c.Servers) <= maxInherited/heirs {
		return ""
	}
	return fmt.Sprintf("%d authorities have no servers of their own, and so each the %d top-level ones: together over %d", heirs, len(c.Servers), maxInherited)
}

func (v *validator) servers(path string, servers []ManagementServer) {
	for i, s := range servers {
		v.server(fmt.Sprintf("%s[%d]", path, i), s)
	}
}

func (v *validator) server(path string, s ManagementServer) {
	if s.URI == "" {
		v.fault(path+".URI", "", "required")
	}
	if reason := carrierFault(s.Carrier); reason != "" {
		v.fault(path+".Carrier", "", reason)
		return
	}
	switch {
	case s.REST() != nil:
		v.rest(path, s)
	case s.File() != nil:
		v.file(path, s)
	default:
		if reason := targetFault(s.URI); reason != "" {
			v.fault(path+".URI", "", reason)
		}
		v.channelCreds(path+".ChannelCreds", s.ChannelCreds)
		v.duration(path+".Carrier.KeepaliveTime", s.GRPC().KeepaliveTime)
		v.duration(path+".Carrier.KeepaliveTimeout", s.GRPC().KeepaliveTimeout)
	}
	v.callCreds(path+".CallCreds", s.CallCreds)
	for i, h := range s.Headers {
		if reason := headerFault(h); reason != "" {
			key := ""
			if isKey(h.Key) {
				key = shown(h.Key)
			}
			v.fault(fmt.Sprintf("%s.Headers[%d]", path, i), key, reason)
		}
	}
	v.duration(path+".RetryBase", s.RetryBase)
	if s.RetryMax < 0 || s.RetryMax != 0 && s.RetryMax < s.RetryBase {
		v.fault(path+".RetryMax", shown(s.RetryMax.String()), "must not be less than RetryBase")
	}
	if limit := s.RateLimit.WithDefaults(); limit != nil {
		if reason := rateFault(limit.FillRate); reason != "" {
			v.fault(path+".RateLimit.FillRate", fmt.Sprint(limit.FillRate), reason)
		}
	}
}

func (v *validator) path(at, path string) {
	if reason := pathFault(path); reason != "" {
		v.fault(at, "", reason)
	}
}

func (v *validator) params(path string, params map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(params)) {
		if !utf8.ValidString(key) || !utf8.ValidString(params[key]) {
			v.fault(fmt.Sprintf("%s[%q]", path, key), shown(params[key]), "must be UTF-8")
		}
	}
}

func (v *validator) duration(path string, d time.Duration) {
	if d < 0 {
		v.fault(path, shown(d.String()), "must not be negative")
	}
}

// rest checks a server that is polled (envoy.config.core.v3.ApiConfigSource).
func (v *validator) rest(path string, s ManagementServer) {
	r, at := s.REST(), path+".Carrier"
	if s.Delta {
		// REST-5
		v.fault(path+".Delta", "", "REST has no incremental variant")
	}
	if r.RefreshDelay <= 0 {
		v.fault(at+".RefreshDelay", shown(r.RefreshDelay.String()), "required, more than 0")
	}
	v.duration(at+".RequestTimeout", r.RequestTimeout)
	if len(r.Endpoints) == 0 {
		v.fault(at+".Endpoints", "", "at least one endpoint is required")
	}
	for i, e := range r.Endpoints {
		to := fmt.Sprintf("%s.Endpoints[%d]", at, i)
		if e.Address == "" {
			v.fault(to+".Address", "", "required")
		}
		if s.ChannelCreds.Type == "" || e.ChannelCreds.Type != "" {
			v.channelCreds(to+".ChannelCreds", e.ChannelCreds)
		}
	}
	if s.ChannelCreds.Type != "" {
		v.channelCreds(path+".ChannelCreds", s.ChannelCreds)
	}
}

// file checks a server that is a file (envoy.config.core.v3.PathConfigSource).
func (v *validator) file(path string, s ManagementServer) {
	if s.Delta {
		v.fault(path+".Delta", "", "a file has no incremental variant")
	}
	if s.File().Path == "" {
		v.fault(path+".Carrier.Path", "", "required")
	}
}

func (v *validator) channelCreds(path string, cc ChannelCreds) {
	switch {
	// H-7: plaintext has to be asked for.
	case cc.Type == "":
		v.fault(path, "", "required; bootstrap.Insecure() asks for plaintext")
	case cc.Build != nil || cc.Type == credsInsecure:
	case cc.Type == credsTLS:
		v.tls(path+".TLS", cc.TLS)
	default:
		v.fault(path+".Build", "", fmt.Sprintf("required with type %q", cc.Type))
	}
}

func (v *validator) tls(path string, t *TLS) {
	if t == nil {
		return
	}
	v.path(path+".CACertificateFile", t.CACertificateFile)
	v.path(path+".CertificateFile", t.CertificateFile)
	v.path(path+".PrivateKeyFile", t.PrivateKeyFile)
	if t.CertificateFile != "" && t.Certificate != nil {
		v.fault(path+".Certificate", "", "is given beside CertificateFile")
	}
	if t.PrivateKeyFile != "" && t.PrivateKey != nil {
		v.fault(path+".PrivateKey", "", "is given beside PrivateKeyFile")
	}
	if t.CACertificateFile != "" && t.CACertificate != nil {
		v.fault(path+".CACertificate", "", "is given beside CACertificateFile")
	}
	hasCert := t.CertificateFile != "" || t.Certificate != nil
	hasKey := t.PrivateKeyFile != "" || t.PrivateKey != nil
	if hasCert != hasKey {
		v.fault(path, "", "want both a certificate and a private key, or neither")
	}
	if t.MaxVersion != 0 && t.MaxVersion < max(t.MinVersion, tls.VersionTLS10) || t.MaxVersion != 0 && t.MinVersion == 0 && t.MaxVersion < tls.VersionTLS12 {
		v.fault(path+".MaxVersion", shown(tls.VersionName(t.MaxVersion)), "must not be less than MinVersion, which is TLS 1.2 by default")
	}
	if t.RefreshInterval < 0 {
		v.fault(path+".RefreshInterval", shown(t.RefreshInterval.String()), "must not be negative")
	}
}

func (v *validator) callCreds(path string, list []CallCreds) {
	for i, cc := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case cc.Type == "":
			v.fault(at+".Type", "", "required")
		case cc.Build != nil:
		case cc.Type != credsJWTTokenFile:
			v.fault(at+".Build", "", fmt.Sprintf("required with type %q", cc.Type))
		case cc.TokenFile == "":
			v.fault(at+".TokenFile", "", "required")
		default:
			v.path(at+".TokenFile", cc.TokenFile)
		}
	}
}

// headerFault says what is wrong with a header, in the rules of gRPC over HTTP/2, without
// telling its value.
func headerFault(h Header) string {
	switch key := strings.ToLower(h.Key); {
	case key == "":
		return "the key is required"
	case !isKey(key):
		return "want a key of letters, digits and _-."
	case strings.HasPrefix(key, "grpc-"), key == "content-type", key == "user-agent", key == "te":
		return "the key is gRPC's own"
	case strings.HasSuffix(key, binarySuffix):
		return ""
	case strings.ContainsFunc(h.Value, func(r rune) bool { return r < ' ' || r > '~' }):
		return "the value is not printable ASCII"
	}
	return ""
}

// isKey is whether a text has the letters of a header's key.
func isKey(text string) bool {
	return strings.Trim(strings.ToLower(text), "0123456789abcdefghijklmnopqrstuvwxyz_-.") == ""
}

const binarySuffix = "-bin"

// noServers judges a Config without top-level servers, which only other sources make up for.
func (v *validator) noServers(c *Config) {
	if len(c.Sources) == 0 && c.DefaultSource == nil && !slices.ContainsFunc(c.Startup, Subscription.standsAlone) {
		v.fault("Servers", "", "at least one server is required")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Authorities)) {
		if len(c.Authorities[name].Servers) == 0 {
			v.fault(fmt.Sprintf("Authorities[%q].Servers", name), "", "required, as there are no top-level servers")
		}
	}
	for i, s := range c.Startup {
		if s.Collection == "*" && s.Source == nil {
			v.fault("Servers", "", fmt.Sprintf("required with Startup[%d]", i))
		}
	}
}

func (v *validator) sources(c *Config) {
	for i, s := range c.Sources {
		path := fmt.Sprintf("Sources[%d]", i)
		if len(s.Authorities) == 0 {
			v.fault(path+".Authorities", "", "at least one authority is required")
		}
		v.source(path, &s)
	}
	v.source("DefaultSource", c.DefaultSource)
}

func (v *validator) source(path string, s *Source) {
	if s == nil {
		return
	}
	for i, name := range s.Authorities {
		at := fmt.Sprintf("%s.Authorities[%d]", path, i)
		switch {
		case name == "":
			v.fault(at, "", "required")
		case slices.Contains(s.Authorities[:i], name):
			v.fault(at, shown(name), "is named twice")
		}
	}
	if len(s.Servers) == 0 {
		v.fault(path+".Servers", "", "at least one server is required")
	}
	v.servers(path+".Servers", s.Servers)
}

func (v *validator) collections(c *Config) {
	for i, s := range c.Startup {
		v.subscription(fmt.Sprintf("Startup[%d]", i), s)
	}
	for i, name := range c.NodeContextParams {
		if reason := nodeParamFault(name); reason != "" {
			v.fault(fmt.Sprintf("NodeContextParams[%d]", i), shown(name), reason)
		}
	}
}

func (v *validator) subscription(path string, s Subscription) {
	if s.TypeURL == "" {
		v.fault(path+".TypeURL", "", "required")
	}
	switch s.Collection {
	case "*":
	case "":
		v.fault(path+".Collection", "", "required; \"*\" is everything of the type")
	default:
		if reason := collectionFault(s.Collection, strings.TrimPrefix(s.TypeURL, typePrefix)); reason != "" {
			v.fault(path+".Collection", shown(s.Collection), reason)
		}
	}
	v.source(path+".Source", s.Source)
}

// WithDefaults returns a copy of the Config with defaults filled: an empty Node, the listener
// templates, and the servers of authorities that have none of their own. The copy shares no
// slice or map with the original, but shares the credentials.
func (c *Config) WithDefaults() *Config {
	out := *c
	out.Node = &corev3.Node{}
	if c.Node != nil {
		out.Node = proto.CloneOf(c.Node)
	}
	out.Servers = cloneServers(c.Servers)
	out.ClientDefaultListenerTemplate = orDefault(c.ClientDefaultListenerTemplate, defaultTemplate)
	out.Authorities = make(map[string]Authority, len(c.Authorities))
	for name, a := range c.Authorities {
		a.ClientListenerTemplate = orDefault(a.ClientListenerTemplate, authorityTemplate(name))
		if len(a.Servers) == 0 {
			a.Servers = c.Servers
		}
		a.Servers = cloneServers(a.Servers)
		out.Authorities[name] = a
	}
	out.Sources = slices.Clone(c.Sources)
	for i, s := range out.Sources {
		out.Sources[i] = s.clone()
	}
	out.DefaultSource = c.DefaultSource.copy()
	out.Startup = slices.Clone(c.Startup)
	for i, s := range out.Startup {
		out.Startup[i].Source = s.Source.copy()
	}
	out.DynamicParameters = c.DynamicParameters.clone()
	out.NodeContextParams = slices.Clone(c.NodeContextParams)
	out.CertificateProviders = maps.Clone(c.CertificateProviders)
	out.AllowedGRPCServices = maps.Clone(c.AllowedGRPCServices)
	out.Notices = slices.Clone(c.Notices)
	return &out
}

func (p DynamicParameters) clone() DynamicParameters {
	out := DynamicParameters{Old: maps.Clone(p.Old), Authorities: maps.Clone(p.Authorities)}
	for name, params := range out.Authorities {
		out.Authorities[name] = maps.Clone(params)
	}
	return out
}

func cloneServers(servers []ManagementServer) []ManagementServer {
	out := slices.Clone(servers)
	for i := range out {
		out[i].CallCreds = slices.Clone(out[i].CallCreds)
		out[i].Headers = slices.Clone(out[i].Headers)
		out[i].RateLimit = out[i].RateLimit.clone()
		if c := out[i].Carrier; c != nil && carrierFault(c) == "" {
			out[i].Carrier = c.clone()
		}
	}
	return out
}
