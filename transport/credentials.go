package transport

import (
	"errors"
	"fmt"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/transport/internal/jwtcreds"
	"github.com/xdswatch/xdswatch/transport/internal/tlscreds"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

func buildError(s bootstrap.ManagementServer, err error) error {
	return fmt.Errorf("management server %q: %w", s.Name(), err)
}

// credentialOptions makes the server's channel credential and all its call credentials, and what
// looks at their files.
func credentialOptions(s bootstrap.ManagementServer, b bounds, secrets *sent) (opts []grpc.DialOption, looks []look, err error) {
	channel, secure, looks, err := channelOption(s.ChannelCreds, b)
	if err != nil {
		return nil, nil, err
	}
	opts = []grpc.DialOption{channel}
	all, more, err := allCallCreds(s.CallCreds, secure, fmt.Sprintf("channel_creds are %q", s.ChannelCreds.Type))
	secrets.remember(all)
	for _, creds := range all {
		opts = append(opts, grpc.WithPerRPCCredentials(creds))
	}
	return opts, append(looks, more...), err
}

// allCallCreds makes all call credentials, and what looks at their files. clear says what is not
// secure if the channel is not.
func allCallCreds(entries []bootstrap.CallCreds, secure bool, clear string) (all []credentials.PerRPCCredentials, looks []look, err error) {
	for _, entry := range entries {
		creds, err := callCreds(entry)
		if err != nil {
			return nil, nil, fmt.Errorf("call_creds %q: %w", entry.Type, err)
		}
		if creds.RequireTransportSecurity() && !secure {
			return nil, nil, fmt.Errorf("call_creds %q: need a secure channel, and %s", entry.Type, clear)
		}
		if token, ok := creds.(*jwtcreds.Creds); ok {
			looks = append(looks, token.Look)
		}
		all = append(all, creds)
	}
	return all, looks, nil
}

// channelOption also reports whether the channel is secured at all. A program's own
// credential takes precedence, so that it may stand in for a type of ours.
func channelOption(c bootstrap.ChannelCreds, b bounds) (opt grpc.DialOption, secure bool, looks []look, err error) {
	switch {
	case c.Build != nil:
		bundle, err := bundleOf(c)
		if err != nil {
			return nil, false, nil, fmt.Errorf("channel_creds %q: %w", c.Type, err)
		}
		return grpc.WithCredentialsBundle(guardedBundle{bundle, b}), bundle.TransportCredentials().Info().SecurityProtocol != "insecure", nil, nil
	case c.Type == "insecure":
		return grpc.WithTransportCredentials(guarded{insecure.NewCredentials(), b}), false, nil, nil
	case c.Type == "tls":
		var config bootstrap.TLS
		if c.TLS != nil {
			config = *c.TLS
		}
		creds := tlscreds.New(config)
		if creds.HasFiles() {
			looks = []look{creds.Look}
		}
		return grpc.WithTransportCredentials(guarded{creds, b}), true, looks, nil
	default:
		return nil, false, nil, fmt.Errorf("channel_creds %q: nothing makes this type", c.Type)
	}
}

func bundleOf(c bootstrap.ChannelCreds) (credentials.Bundle, error) {
	bundle, err := c.Build()
	switch {
	case err != nil:
		return nil, err
	case bundle == nil || bundle.TransportCredentials() == nil:
		return nil, errors.New("made without transport credentials")
	}
	return bundle, nil
}

func callCreds(c bootstrap.CallCreds) (credentials.PerRPCCredentials, error) {
	switch {
	case c.Build != nil:
		creds, err := c.Build()
		if err == nil && creds == nil {
			err = errors.New("made as nil")
		}
		return creds, err
	case c.Type == "jwt_token_file":
		if c.TokenFile == "" {
			return nil, errors.New("no jwt_token_file is named")
		}
		return jwtcreds.New(c.TokenFile), nil
	default:
		return nil, errors.New("nothing makes this type")
	}
}
