package client

import (
	"cmp"
	"time"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/engine"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/transport"
)

// server is one that the machine knows.
func (c *Client) server(i int) bootstrap.ManagementServer { return c.sources.Server(i) }

// uri is a server's.
func (c *Client) uri(server int) string { return c.server(server).Name() }

// extend has the engine know more servers and sources.
func (c *Client) extend(servers []engine.Server, all []machine.Source) error {
	if !c.engine.Extend(servers, all) {
		return ErrClosed
	}
	return nil
}

// paramsOf are the dynamic parameters of a key's names.
func (c *Client) paramsOf(k authority.Key) map[string]string {
	if k.Old {
		return c.boot.DynamicParameters.Old
	}
	return c.boot.DynamicParameters.Authorities[k.Authority]
}

// override lets the program's choice win over the bootstrap's, where there is one: files
// and servers that are polled know a single way.
func (c Config) override(s bootstrap.ManagementServer) bootstrap.ManagementServer {
	switch {
	case s.REST() != nil:
		s.PerType = true
		return s
	case s.File() != nil:
		return s
	}
	if c.Variant != VariantFromBootstrap {
		// STREAM-1: the program's choice wins.
		s.Delta = c.Variant == VariantDelta
	}
	if c.Streams != StreamsFromBootstrap {
		s.PerType = c.Streams == StreamsPerType
	}
	return s
}

func (c *Client) engineServer(s bootstrap.ManagementServer) engine.Server {
	es := engine.Server{
		Server: machine.Server{
			// FILE-3: a file is the whole world of its type.
			Delta: s.Delta, PerType: s.PerType, AlwaysFull: s.File() != nil, Polled: s.REST() != nil,
			KeepDeleted:      s.Features.IgnoreResourceDeletion, // ERR-4: the server's feature
			FailOnDataErrors: s.Features.FailOnDataErrors,
			ResumeVersion:    s.Features.ResumeVersion,
			ExplicitWildcard: s.Features.ExplicitWildcard,
			NodeAlways:       s.NodeOnEveryRequest || c.config.NodeOnEveryRequest,
			NoParams:         s.TransportV2,       // V2-4
			Rate:             rateOf(s.RateLimit), // RATE-1: none, unless so configured
		},
		URI:     s.Name(),
		V2:      s.TransportV2,
		Connect: func() (transport.Conn, error) { return c.config.Transport.Build(s) },
		Source: resource.Source{
			// TYPE-8: a decoder knows bootstrap and server.
			Server: s.Name(), Trusted: s.Features.TrustedXDSServer,
			Validate: !c.config.SkipValidation, Bootstrap: c.boot,
		},
		Backoff: c.config.Backoff,
	}
	// DNE-8: 30 seconds, and an error.
	if s.Features.ResourceTimerIsTransientError && c.config.ResourceTimeout >= 0 {
		es.TransientTimeout = cmp.Or(c.config.ResourceTimeout, transientTimeout)
	}
	// BACKOFF-1: the bounds that the bootstrap has.
	if es.Backoff == nil {
		initial, most := cmp.Or(max(s.RetryBase, 0), engine.FirstWait), cmp.Or(max(s.RetryMax, 0), engine.MaxWait)
		if es.Backoff = engine.NewBackoff(initial, most); s.REST() != nil {
			es.Backoff = engine.NewPolling(s.REST().RefreshDelay, initial, most)
		}
	}
	return es
}

// rateOf is what the machine keeps to.
func rateOf(l *bootstrap.RateLimit) machine.Rate {
	const year = 365 * 24 * time.Hour
	if l == nil {
		return machine.Rate{}
	}
	limit := l.WithDefaults()
	every := max(float64(time.Second)/limit.FillRate, 1)
	return machine.Rate{Tokens: int64(limit.MaxTokens), Every: time.Duration(min(every, float64(year)))}
}
