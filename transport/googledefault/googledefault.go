// Package googledefault is the "google_default" channel credential of a bootstrap (gRFC
// A27): Google's application default credentials over TLS or, to services that ask for
// it, ALTS. It is a module of its own, for the sake of programs that do without.
package googledefault

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/google"
	"google.golang.org/grpc/credentials/oauth"
)

// Type is the name of the credential in channel_creds.
const Type = "google_default"

// scope is what gRPC's own google_default credential asks for.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// New makes the credential. Its config is ignored, as gRPC does; it is there so that New
// is what bootstrap.WithChannelCreds takes.
//
// The application default credentials are looked for at once, in the places that Google
// documents: GOOGLE_APPLICATION_CREDENTIALS, gcloud's own file, and the metadata server of
// the machine. An error says that there are none, where gRPC would log it and send
// requests without a token. New may block for some seconds on the metadata server.
func New(json.RawMessage) (credentials.Bundle, error) {
	// The context is that of every later request for a token, so it must not end.
	token, err := oauth.NewApplicationDefault(context.Background(), scope)
	if err != nil {
		return nil, fmt.Errorf("google application default credentials: %w", err)
	}
	return google.NewDefaultCredentialsWithOptions(google.DefaultCredentialsOptions{PerRPCCreds: token}), nil
}
