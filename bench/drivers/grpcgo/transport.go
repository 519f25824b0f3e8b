package main

import (
	"context"
	"crypto/tls"
	"errors"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/internal/xds/clients"
)

// gated is a transport whose streams wait.
type gated struct {
	clients.TransportBuilder
	open chan struct{}
}

type gatedTransport struct {
	clients.Transport
	open chan struct{}
}

func (g *gated) Build(si clients.ServerIdentifier) (clients.Transport, error) {
	t, err := g.TransportBuilder.Build(si)
	return &gatedTransport{t, g.open}, err
}

func (t *gatedTransport) NewStream(ctx context.Context, m string) (clients.Stream, error) {
	<-t.open
	return t.Transport.NewStream(ctx, m)
}

// bundle makes credentials of a TLS configuration; nil means plaintext.
func bundle(t *tls.Config) credentials.Bundle {
	if t == nil {
		return insecure.NewBundle()
	}
	return tlsBundle{credentials.NewTLS(t)}
}

type tlsBundle struct {
	creds credentials.TransportCredentials
}

func (b tlsBundle) TransportCredentials() credentials.TransportCredentials { return b.creds }
func (b tlsBundle) PerRPCCredentials() credentials.PerRPCCredentials       { return nil }
func (b tlsBundle) NewWithMode(string) (credentials.Bundle, error) {
	return nil, errors.ErrUnsupported
}
