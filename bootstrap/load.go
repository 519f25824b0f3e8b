package bootstrap

import (
	"fmt"
	"os"
	"slices"

	"github.com/xdswatch/xdswatch/internal/regular"
)

// Environment variables that [FromEnv] reads (gRFC A27).
const (
	// EnvPath names a file; it has precedence over EnvConfig.
	EnvPath = "GRPC_XDS_BOOTSTRAP"
	// EnvConfig holds the text itself.
	EnvConfig = "GRPC_XDS_BOOTSTRAP_CONFIG"
)

// Load reads the bootstrap in a file, in either format; it must be a regular file. Beside the
// errors of [Parse] it returns those of reading the file, each a [*fs.PathError]. It reads no
// other files than Parse does.
func Load(path string, opts ...Option) (*Config, error) {
	// H-10: no larger file is read.
	data, err := regular.Read(path, regular.MaxBootstrap)
	if err != nil {
		return nil, regular.Named(path, err)
	}
	return Parse(path, data, opts...)
}

// FromEnv loads the file that GRPC_XDS_BOOTSTRAP names, or else the text in
// GRPC_XDS_BOOTSTRAP_CONFIG (gRFC A27). An empty variable counts as unset; if both are, the
// error is [ErrNoBootstrap]. FromEnv reads the environment when it is called.
func FromEnv(opts ...Option) (*Config, error) {
	// BOOT-1: the file wins over the text.
	if path := os.Getenv(EnvPath); path != "" {
		c, err := Load(path, opts...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", EnvPath, err)
		}
		return c, nil
	}
	if text := os.Getenv(EnvConfig); text != "" {
		return Parse(EnvConfig, []byte(text), opts...)
	}
	return nil, ErrNoBootstrap
}

// Parse reads a bootstrap; source is its name in errors. The content decides the format: an
// object with xds_servers is gRPC's, one with dynamic_resources or another field of Envoy's is
// Envoy's, and anything else is taken for gRPC's. Both may be JSON or one document of YAML; a
// byte order mark is skipped, and equal keys of an object are a fault. A bootstrap and a file of Secrets may have 2 MiB each, and YAML's
// aliases may expand them to 8 MiB of JSON. In gRPC's format unknown keys are notices, but
// faults where they may be misspelt keys of credentials; in Envoy's unknown fields of the messages that Parse reads are
// faults, as in Envoy, and it ignores the rest of the document.
//
// Parse also reads Secrets that a cluster's TLS names (tls_certificate_sds_secret_configs,
// validation_context_sds_secret_config and combined_validation_context): those of
// static_resources, and those in files (path_config_source), which are regular files of JSON or
// YAML, and later changes of such a file have no effect. Certificates
// and tokens, also those that a Secret names by filename, are read when a connection is made;
// Parse opens them to give a notice of each that is not there yet.
//
// The error joins all faults, or the first thousand, each a [*FieldError] or, for a file of Secrets, a [*SyntaxError];
// or it is the *SyntaxError of the bootstrap. A Config from Parse passes [Config.Validate] and
// has its defaults filled.
func Parse(source string, data []byte, opts ...Option) (*Config, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	root, err := decode(source, data)
	if err != nil {
		return nil, err
	}
	d := &document{source: source, opts: o, yaml: isYAML(data)}
	c := &Config{origin: &origin{source: source, opts: slices.Clone(opts)}}
	x := field{doc: d, val: root}
	// S-27: the content decides the format.
	if isEnvoy(root) {
		d.camel = true
		x.envoyConfig(c)
		c.origin.static = x.at("static_resources").val
	} else {
		x.grpcConfig(c)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	// U-9: what has no effect is noticed.
	c.Notices = told(source, append(d.notices, c.missingFiles(source)...))
	return c.WithDefaults(), nil
}

// Server returns the bootstrap of one management server that is reached in plaintext at a gRPC
// target such as "host:port". Most servers choose by Config.Node.Id what they send; it is empty until the program
// sets it. An empty target is an error.
func Server(target string) (*Config, error) {
	c := &Config{Servers: []ManagementServer{{URI: target, ChannelCreds: Insecure()}}}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c.WithDefaults(), nil
}

// Insecure is the channel credential of a plaintext connection.
func Insecure() ChannelCreds { return ChannelCreds{Type: credsInsecure} }
