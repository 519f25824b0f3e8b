package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// outcome tells all of a Config, or of the error in its place, one line for each thing
// that differs from its zero value.
func outcome(c *bootstrap.Config, err error) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	writeNode(line, c)
	for _, s := range c.Servers {
		line("server %s", serverText(s))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Authorities)) {
		a := c.Authorities[name]
		line("authority %q template=%s", name, a.ClientListenerTemplate)
		for _, s := range a.Servers {
			line("authority %q server %s", name, serverText(s))
		}
		if a.FallbackOnReachabilityOnly {
			line("authority %q fallback on reachability only", name)
		}
	}
	for i := range c.Sources {
		writeSource(line, fmt.Sprint("source ", i), &c.Sources[i])
	}
	writeSource(line, "default source", c.DefaultSource)
	line("client template %s", c.ClientDefaultListenerTemplate)
	if c.ServerListenerTemplate != "" {
		line("server template %s", c.ServerListenerTemplate)
	}
	for _, name := range slices.Sorted(maps.Keys(c.CertificateProviders)) {
		p := c.CertificateProviders[name]
		line("certificate provider %q %s %s", name, p.PluginName, p.Config)
	}
	for _, uri := range slices.Sorted(maps.Keys(c.AllowedGRPCServices)) {
		s := c.AllowedGRPCServices[uri]
		line("allowed %q %s", uri, credsText(s.ChannelCreds, s.CallCreds))
	}
	for _, s := range c.Startup {
		line("start %s %q within %v", s.TypeURL, s.Collection, s.InitialFetchTimeout)
		writeSource(line, "start", s.Source)
	}
	if c.NodeContextParams != nil {
		line("node parameters %q", c.NodeContextParams)
	}
	for _, n := range c.Notices {
		if !ofMissingFile(n) {
			line("notice %s", n)
		}
	}
	return b.String()
}

func writeSource(line func(string, ...any), what string, s *bootstrap.Source) {
	if s == nil {
		return
	}
	line("%s of %q within %v", what, s.Authorities, s.InitialFetchTimeout)
	for _, server := range s.Servers {
		line("%s server %s", what, serverText(server))
	}
	for _, n := range s.Notices {
		line("%s notice %s", what, n)
	}
}

func writeNode(line func(string, ...any), c *bootstrap.Config) {
	n := c.Node
	if n.GetId() != "" || n.GetCluster() != "" {
		line("node id=%q cluster=%q", n.GetId(), n.GetCluster())
	}
	if l := n.GetLocality(); l != nil {
		line("node locality %q %q %q", l.GetRegion(), l.GetZone(), l.GetSubZone())
	}
	if m := n.GetMetadata(); m != nil {
		text, err := json.Marshal(m.AsMap())
		line("node metadata %s %v", text, err)
	}
}

func serverText(s bootstrap.ManagementServer) string {
	text := s.URI + " " + credsText(s.ChannelCreds, s.CallCreds)
	if s.Features != (bootstrap.Features{}) {
		text += fmt.Sprintf(" %+v", s.Features)
	}
	if s.Delta {
		text += " delta"
	}
	if s.PerType {
		text += " per type"
	}
	if s.RateLimit != nil {
		text += fmt.Sprintf(" rate=%+v", *s.RateLimit)
	}
	if s.NodeOnEveryRequest {
		text += " node always"
	}
	if s.File() != nil {
		text += fmt.Sprintf(" file=%+v", *s.File())
	}
	if s.REST() != nil {
		text += fmt.Sprintf(" delay=%v timeout=%v", s.REST().RefreshDelay, s.REST().RequestTimeout)
		for _, e := range s.REST().Endpoints {
			text += fmt.Sprintf(" %s %s %s", e.Address, e.Authority, credsText(e.ChannelCreds, nil))
		}
	}
	if s.HostAuthority != "" {
		text += " authority=" + s.HostAuthority
	}
	return text
}

func credsText(cc bootstrap.ChannelCreds, calls []bootstrap.CallCreds) string {
	text := "creds=" + cc.Type
	if cc.TLS != nil && !isZero(*cc.TLS) {
		text += fmt.Sprintf("(ca=%q cert=%q key=%q refresh=%v)", cc.TLS.CACertificateFile,
			cc.TLS.CertificateFile, cc.TLS.PrivateKeyFile, cc.TLS.RefreshInterval)
	}
	for _, call := range calls {
		text += fmt.Sprintf(" call=%s(%s)", call.Type, call.TokenFile)
	}
	return text
}

func isZero(t bootstrap.TLS) bool {
	return t.CACertificateFile == "" && t.CertificateFile == "" && t.PrivateKeyFile == "" && t.RefreshInterval == 0
}
