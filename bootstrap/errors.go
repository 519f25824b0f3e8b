package bootstrap

import (
	"errors"
	"fmt"
)

// ErrNoBootstrap is returned by [FromEnv] when neither environment variable is set.
var ErrNoBootstrap = errors.New("no bootstrap: neither " + EnvPath + " nor " + EnvConfig + " is set")

// ErrUnknownAuthority is wrapped by the error of [Config.ClientListenerName] for an
// authority that the bootstrap does not have.
var ErrUnknownAuthority = errors.New("authority is not in the bootstrap")

// ErrNoTemplate is returned by [Config.ServerListenerName] when the bootstrap has no
// server_listener_resource_name_template.
var ErrNoTemplate = errors.New("bootstrap has no server_listener_resource_name_template")

// FieldError is one fault of a bootstrap. [Config.Validate] joins all faults into one error, and
// [Parse] the first thousand; errors.As finds the first.
type FieldError struct {
	// Source is the file, the environment variable, or the name that [Parse] was given; for a
	// Secret, its file.
	Source string
	// Path leads to the field, such as `xds_servers[0].channel_creds[0].type` or
	// `authorities["a.example"].xds_servers[0].server_uri`, or of a Secret
	// `resources["name"].tls_certificate.private_key`; "" is the whole document.
	Path string
	// Value is the offending value as JSON, cut when long. It is "" if the field is
	// absent, holds an object or a list, or might be a secret.
	Value string
	// Reason says what is wrong.
	Reason string
}

func (e *FieldError) Error() string {
	switch {
	case e.Path == "":
		return fmt.Sprintf("%s: %s", e.Source, e.Reason)
	case e.Value == "":
		return fmt.Sprintf("%s: %s: %s", e.Source, e.Path, e.Reason)
	}
	return fmt.Sprintf("%s: %s = %s: %s", e.Source, e.Path, e.Value, e.Reason)
}

// SyntaxError is a bootstrap, or a file of Secrets, that is neither JSON nor one document of
// YAML.
type SyntaxError struct {
	Source string
	// Line and Column count from 1, the column in bytes; 0 is unknown. In YAML the line
	// may be the one before.
	Line, Column int
	// Err is the parser's error; of YAML only the kind of fault, without what the text holds.
	Err error
}

func (e *SyntaxError) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %v", e.Source, e.Err)
	case e.Column == 0:
		return fmt.Sprintf("%s: line %d: %v", e.Source, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: line %d, column %d: %v", e.Source, e.Line, e.Column, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }
