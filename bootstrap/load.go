package bootstrap

import (
	"fmt"
	"os"
	"slices"

	"github.com/xdswatch/xdswatch/internal/regular"
)

// Environment variables that [FromEnv] reads (gRFC A27).
const (
	// EnvPath names a file; it wins.
	EnvPath = "GRPC_XDS_BOOTSTRAP"
	// EnvConfig holds the text itself.
	EnvConfig = "GRPC_XDS_BOOTSTRAP_CONFIG"
)

// Load reads the bootstrap in a file, in either format, which has to be a regular file. Beside
// the errors of [Parse] it returns those of reading the file, each a [*fs.PathError]. It reads
// no other file than Parse does.
func Load(path string, opts ...Option) (*Config, error) {
	data, err := regular.Read(path, regular.MaxBootstrap)
	if err != nil {
		return nil, regular.Named(path, err)
	}
	return Parse(path, data, opts...)
}

// FromEnv loads the file that GRPC_XDS_BOOTSTRAP names, or else the text in
// GRPC_XDS_BOOTSTRAP_CONFIG (gRFC A27). An empty variable is an unset one; if both are,
// the error is [ErrNoBootstrap]. The environment is read when FromEnv is called.
func FromEnv(opts ...Option) (*Config, error) {
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

// Parse reads a bootstrap; source is the name that errors give it. The format follows
// from the content: an object with xds_servers is gRPC's, one with dynamic_resources or
// another field of Envoy's is Envoy's, and anything else is taken for gRPC's. Both may be
// written in JSON or in YAML, of which there must be one document; a byte order mark is
// skipped. A bootstrap and a file of Secrets may have 2 MiB each, and unfold by YAML's aliases
// to 8 MiB of JSON. In gRPC's format unknown keys are notices, but faults in the credentials; in Envoy's
// unknown fields of the messages that are read here are faults, as in Envoy, and the rest of
// the document is ignored.
//
// Secrets of files (path_config_source in tls_certificate_sds_secret_configs,
// validation_context_sds_secret_config and combined_validation_context of a cluster's TLS)
// are read here, from JSON or YAML in regular files, and a later change of
// such a file is not followed.
// Certificates and tokens, those that a Secret names by filename among them, are read when a
// connection is made; Parse opens them to give a notice of each that is not there yet.
//
// The error joins all faults, each a [*FieldError] or, of a file of Secrets, a
// [*SyntaxError]; or it is the [*SyntaxError] of the bootstrap. A Config that Parse returns
// passes [Config.Validate] and has its defaults filled.
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
	c.Notices = append(d.notices, c.missingFiles(source)...)
	return c.WithDefaults(), nil
}

// Server is the bootstrap of one management server that is reached in plaintext at a
// gRPC target such as "host:port". It errs if the target is empty.
func Server(target string) (*Config, error) {
	c := &Config{Servers: []ManagementServer{{URI: target, ChannelCreds: Insecure()}}}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c.WithDefaults(), nil
}

// Insecure is the channel credential of a plaintext connection.
func Insecure() ChannelCreds { return ChannelCreds{Type: credsInsecure} }
