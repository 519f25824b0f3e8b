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
	if c.WatchListeners || c.WatchClusters {
		line("watch listeners=%t clusters=%t", c.WatchListeners, c.WatchClusters)
	}
	for _, n := range c.Notices {
		line("notice %s", n)
	}
	return b.String()
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
