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
	return fmt.Errorf("management server %q: %w", s.URI, err)
}

// credentialOptions makes the server's channel credential and all its call credentials. Frames may
// take as much memory as the limit says.
func credentialOptions(s bootstrap.ManagementServer, limit int) ([]grpc.DialOption, error) {
	channel, secure, err := channelOption(s.ChannelCreds, limit)
	if err != nil {
		return nil, err
	}
	opts := []grpc.DialOption{channel}
	for _, entry := range s.CallCreds {
		creds, err := callCreds(entry)
		if err != nil {
			return nil, fmt.Errorf("call_creds %q: %w", entry.Type, err)
		}
		if creds.RequireTransportSecurity() && !secure {
			return nil, fmt.Errorf("call_creds %q: need a secure channel, and channel_creds are %q", entry.Type, s.ChannelCreds.Type)
		}
		opts = append(opts, grpc.WithPerRPCCredentials(creds))
	}
	return opts, nil
}

// channelOption also reports whether the channel is secured at all. A program's own
// credential takes precedence, so that it may stand in for a type of ours.
func channelOption(c bootstrap.ChannelCreds, limit int) (opt grpc.DialOption, secure bool, err error) {
	switch {
	case c.Build != nil:
		bundle, err := bundleOf(c)
		if err != nil {
			return nil, false, fmt.Errorf("channel_creds %q: %w", c.Type, err)
		}
		return grpc.WithCredentialsBundle(guardedBundle{bundle, limit}), bundle.TransportCredentials().Info().SecurityProtocol != "insecure", nil
	case c.Type == "insecure":
		return grpc.WithTransportCredentials(guarded{insecure.NewCredentials(), limit}), false, nil
	case c.Type == "tls":
		var config bootstrap.TLS
		if c.TLS != nil {
			config = *c.TLS
		}
		return grpc.WithTransportCredentials(guarded{tlscreds.New(config), limit}), true, nil
	default:
		return nil, false, fmt.Errorf("channel_creds %q: nothing makes this type", c.Type)
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
