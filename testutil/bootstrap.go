package testutil

import (
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Bootstrap is the bootstrap of a client of this server alone, in plaintext: for a server in memory the
// client needs [Server.DialOptions] too, as transport.GRPCConfig.DialOptions. The caller may change it.
func (s *Server) Bootstrap() *bootstrap.Config { return bootstrapOf(s.Target(), bootstrap.Insecure()) }

// Bootstrap is the bootstrap of a client of this server alone. If the server speaks TLS the client trusts
// the system's authorities, so that a test has to set TLS.CACertificateFile of the server's credentials.
// The caller may change it.
func (m *ManagementServer) Bootstrap() *bootstrap.Config {
	creds := bootstrap.Insecure()
	if m.config.TLS != nil {
		creds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{}}
	}
	return bootstrapOf(m.Addr(), creds)
}

// Bootstrap is the bootstrap of a client that polls this server alone, in plaintext, every 10 ms. The
// caller may change it.
func (s *RESTServer) Bootstrap() *bootstrap.Config {
	c := bootstrapOf(s.Addr(), bootstrap.Insecure())
	c.Servers[0].PerType = true
	c.Servers[0].Carrier = &bootstrap.REST{
		Endpoints: []bootstrap.RESTEndpoint{{Address: s.Addr()}}, RefreshDelay: 10 * time.Millisecond, RequestTimeout: 10 * time.Second,
	}
	return c
}

// Bootstrap is the bootstrap of a client of what the proxy stands before, in plaintext. The caller may
// change it.
func (p *TCPProxy) Bootstrap() *bootstrap.Config {
	uri := p.addr
	if p.network == "unix" {
		uri = "unix:" + p.addr
	}
	return bootstrapOf(uri, bootstrap.Insecure())
}

func bootstrapOf(uri string, creds bootstrap.ChannelCreds) *bootstrap.Config {
	c := &bootstrap.Config{Servers: []bootstrap.ManagementServer{{URI: uri, ChannelCreds: creds}}}
	return c.WithDefaults()
}
