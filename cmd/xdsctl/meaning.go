package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// meaningOf is what a bootstrap means.
func meaningOf(boot *bootstrap.Config) *report.Meaning {
	m := &report.Meaning{
		Node: resourcejson.Options{}.Message(boot.Node), Sources: []report.Source{}, Startup: []report.Startup{}, Notices: append([]string{}, boot.Notices...),
		CertificateProviders:   slices.Sorted(maps.Keys(boot.CertificateProviders)),
		ClientListenerTemplate: cmp.Or(boot.ClientDefaultListenerTemplate, "%s"), ServerListenerTemplate: boot.ServerListenerTemplate,
	}
	for target := range boot.AllowedGRPCServices {
		m.AllowedGRPCServices = append(m.AllowedGRPCServices, told(target))
	}
	slices.Sort(m.AllowedGRPCServices)
	if len(boot.Servers) > 0 {
		m.Sources = append(m.Sources, sourceOf("names without an authority", boot.Servers))
	}
	for _, name := range slices.Sorted(maps.Keys(boot.Authorities)) {
		a := boot.Authorities[name]
		servers := a.Servers
		if len(servers) == 0 {
			servers = boot.Servers
		}
		s := sourceOf("authority "+quoted(name), servers)
		s.ReachabilityOnly = a.FallbackOnReachabilityOnly
		m.Sources = append(m.Sources, s)
	}
	for _, s := range boot.Sources {
		m.Sources = append(m.Sources, sourceOf("authorities "+strings.Join(s.Authorities, " "), s.Servers))
	}
	if s := boot.DefaultSource; s != nil {
		m.Sources = append(m.Sources, sourceOf("any other authority", s.Servers))
	}
	for _, s := range boot.Startup {
		name := subscription.TypeText(s.TypeURL)
		m.Startup = append(m.Startup, report.Startup{Type: s.TypeURL, Collection: s.Collection})
		if s.Source != nil {
			m.Sources = append(m.Sources, sourceOf(name+" from the start", s.Source.Servers))
		}
	}
	return m
}

func quoted(name string) string {
	if name == "" {
		return `""`
	}
	return name
}

func sourceOf(serves string, servers []bootstrap.ManagementServer) report.Source {
	out := report.Source{Serves: serves, Servers: []report.Server{}}
	for _, s := range servers {
		out.Servers = append(out.Servers, serverOf(s))
	}
	return out
}

func serverOf(s bootstrap.ManagementServer) report.Server {
	out := report.Server{
		URI: s.Name(), Carrier: "grpc", Credentials: credentialsOf(s.ChannelCreds), Variant: "sotw", Streams: "ads",
		Transport: "v3", Features: featuresOf(s), Headers: []string{}, CallCredentials: []string{},
	}
	switch {
	case s.File() != nil:
		out.Carrier, out.Credentials, out.Streams = "file", report.Credentials{}, "per-type"
	case s.REST() != nil:
		out.Carrier, out.Streams = "rest", "per-type"
		for _, e := range s.REST().Endpoints {
			out.Endpoints = append(out.Endpoints, e.Address)
			if e.ChannelCreds.Type != "" {
				out.Credentials = credentialsOf(e.ChannelCreds)
			}
		}
	}
	if s.Delta {
		out.Variant = "delta"
	}
	if s.PerType {
		out.Streams = "per-type"
	}
	if s.TransportV2 {
		out.Transport = "v2"
	}
	for _, h := range s.Headers { // values may be secret
		out.Headers = append(out.Headers, h.Key)
	}
	for _, c := range s.CallCreds {
		text := c.Type
		if c.TokenFile != "" {
			text += " " + c.TokenFile
		}
		out.CallCredentials = append(out.CallCredentials, text)
	}
	return out
}

// credentialsOf says which files and names credentials use, and never what they hold.
func credentialsOf(c bootstrap.ChannelCreds) report.Credentials {
	out := report.Credentials{Type: c.Type}
	t := c.TLS
	if c.Type != "tls" {
		return out
	}
	if t == nil {
		t = &bootstrap.TLS{}
	}
	out.ServerName = t.ServerName
	out.Verified = !t.SkipVerify
	out.TrustedCA = place(t.CACertificateFile, t.CACertificate, "the system's")
	out.Certificate = place(t.CertificateFile, t.Certificate, "")
	out.PrivateKey = place(t.PrivateKeyFile, t.PrivateKey, "")
	return out
}

// place is where something is: in a file, in the bootstrap itself, or else.
func place(file string, inline []byte, otherwise string) string {
	if file == "" && inline != nil {
		return "inline"
	}
	return cmp.Or(file, otherwise)
}

func featuresOf(s bootstrap.ManagementServer) []string {
	features := []string{}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{s.Features.FailOnDataErrors, "fail_on_data_errors"},
		{s.Features.IgnoreResourceDeletion, "ignore_resource_deletion"},
		{s.Features.ResourceTimerIsTransientError, "resource_timer_is_transient_error"},
		{s.Features.TrustedXDSServer, "trusted_xds_server"},
		{s.Features.ExplicitWildcard, "xdswatch.explicit_wildcard"},
		{s.Features.ResumeVersion, "xdswatch.resume_version"},
	} {
		if f.on {
			features = append(features, f.name)
		}
	}
	return features
}
