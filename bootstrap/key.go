package bootstrap

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Key identifies a server: two have the same key iff a client may share one connection and one
// stream between them. They must agree in URI, selected credentials, known features (gRFC A27,
// A71), variant, version, headers, retry bounds, rate limit, and in keepalive, polling or file.
// Build functions are not compared; Type and Config represent them. The key contains no secret.
// Use it only for comparison within one process: its text is not stable across releases.
func (s ManagementServer) Key() string {
	// BOOT-2: equal by URI, credentials and known features.
	b := fmt.Appendf(nil, "%q %+v %t %t %t %q %d %d %t ", s.URI, s.Features, s.Delta, s.PerType, s.TransportV2,
		s.HostAuthority, s.RetryBase, s.RetryMax, s.NodeOnEveryRequest)
	for _, h := range s.Headers {
		b = fmt.Appendf(b, "%q %q ", h.Key, h.Value)
	}
	b = append(b, "headers "...)
	b = s.ChannelCreds.appendIdentity(b)
	if limit := s.RateLimit.WithDefaults(); limit != nil {
		b = fmt.Appendf(b, "rate %+v ", *limit)
	}
	if g := s.GRPC(); g != nil && *g != (GRPC{}) {
		b = fmt.Appendf(b, "grpc %d %d ", g.KeepaliveTime, g.KeepaliveTimeout)
	}
	if s.REST() != nil {
		b = s.REST().appendIdentity(b)
	}
	if s.File() != nil {
		b = fmt.Appendf(b, "file %q %q ", s.File().Path, s.File().WatchedDirectory)
	}
	for _, cc := range s.CallCreds {
		b = fmt.Appendf(b, "%q %q %q ", cc.Type, cc.TokenFile, cc.Config)
	}
	sum := sha256.Sum256(b)
	return s.Name() + "#" + hex.EncodeToString(sum[:8])
}

func (r *REST) appendIdentity(b []byte) []byte {
	b = fmt.Appendf(b, "rest %d %d ", r.RefreshDelay, r.RequestTimeout)
	for _, e := range r.Endpoints {
		b = fmt.Appendf(b, "%q %q ", e.Address, e.Authority)
		b = e.ChannelCreds.appendIdentity(b)
	}
	return b
}

// appendIdentity appends what tells a credential from another: of the built-in types the
// parsed form, so that unknown fields of their config do not count.
func (cc ChannelCreds) appendIdentity(b []byte) []byte {
	switch {
	case cc.Build == nil && cc.Type == credsInsecure:
		return fmt.Appendf(b, "%q ", cc.Type)
	case cc.Build == nil && cc.Type == credsTLS:
		t := TLS{}
		if cc.TLS != nil {
			t = *cc.TLS
		}
		return fmt.Appendf(b, "%q %#v ", cc.Type, plainTLS(t))
	}
	return fmt.Appendf(b, "%q %q ", cc.Type, cc.Config)
}
