package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/transport"
)

// Defaults of flags.
const (
	defaultNode            = "xdsctl"
	defaultResourceTimeout = 15 * time.Second
	defaultKeepalive       = 5 * time.Minute
	defaultPatience        = 20 * time.Second
)

// watchFlags are the flags of `xdsctl watch`.
type watchFlags struct {
	bootstrap, server, node string
	variant, streams        choice
	output, logLevel        choice
	resourceTimeout         time.Duration
	keepalive, patience     time.Duration
	stopAfter               time.Duration
	once, stdin             bool
	noValidate, showSecrets bool
	set                     *pflag.FlagSet // says which were given
}

// choice is a flag with a few values; "" if there is no default.
type choice struct {
	value  string
	values []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.values, "|") }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.values, s) {
		last := len(c.values) - 1
		return fmt.Errorf("want %s or %s", strings.Join(c.values[:last], ", "), c.values[last])
	}
	c.value = s
	return nil
}

func (f *watchFlags) register(set *pflag.FlagSet) {
	f.set = set
	f.variant = choice{values: []string{"sotw", "delta"}}
	f.streams = choice{values: []string{"ads", "per-type"}}
	f.output = choice{"text", []string{"text", "json"}}
	f.logLevel = choice{"warn", []string{"debug", "info", "warn", "error"}}
	set.SortFlags = false
	set.StringVar(&f.bootstrap, "bootstrap", "", "bootstrap `FILE`: gRPC's JSON, or Envoy's JSON or YAML (default $"+bootstrap.EnvPath+", else the text in $"+bootstrap.EnvConfig+")")
	set.StringVar(&f.server, "server", "", "no bootstrap: the plaintext management server at `HOST:PORT`")
	set.StringVar(&f.node, "node-id", defaultNode, "node `ID`, with --server")
	set.Var(&f.variant, "variant", "variant of the protocol (default as the bootstrap says; sotw with --server)")
	set.Var(&f.streams, "streams", "one stream for all types, or one for each (default as the bootstrap says; ads with --server)")
	set.DurationVar(&f.resourceTimeout, "resource-timeout", defaultResourceTimeout, "a resource of which the server says nothing for this long does not exist; 0: wait for ever")
	set.BoolVar(&f.once, "once", false, "stop when every subscription has had its first answer")
	set.DurationVar(&f.stopAfter, "for", 0, "stop after this time (default: run until interrupted)")
	set.BoolVar(&f.stdin, "stdin", false, "read commands from standard input")
	set.Var(&f.output, "output", "text for people, json for programs: one object a line")
	set.DurationVar(&f.keepalive, "keepalive", defaultKeepalive, "ping a silent server after this time, at least 10s; 0: never")
	set.DurationVar(&f.patience, "keepalive-timeout", defaultPatience, "end the connection if a ping has no answer for this time")
	set.BoolVar(&f.noValidate, "no-validate", false, "leave out the messages' own validation rules")
	set.BoolVar(&f.showSecrets, "show-secrets", false, "print the contents of Secrets and keys in JSON, which are redacted otherwise")
	set.Var(&f.logLevel, "log-level", "what is logged to standard error")
}

// check finds flags that make no sense, alone or together.
func (f *watchFlags) check() error {
	var errs []error
	for _, name := range []string{"resource-timeout", "for", "keepalive", "keepalive-timeout"} {
		if d, err := f.set.GetDuration(name); err == nil && d < 0 {
			errs = append(errs, fmt.Errorf("--%s %s is negative", name, d))
		}
	}
	if f.patience == 0 {
		errs = append(errs, errors.New("--keepalive-timeout is 0; no answer comes that soon"))
	}
	if f.server != "" && f.bootstrap != "" {
		errs = append(errs, errors.New("--server and --bootstrap are both given; one of them says where the server is"))
	}
	if f.set.Changed("server") && f.server == "" {
		errs = append(errs, errors.New("--server is empty; want HOST:PORT"))
	}
	if f.set.Changed("bootstrap") && f.bootstrap == "" {
		errs = append(errs, errors.New("--bootstrap is empty; want a FILE"))
	}
	if !utf8.ValidString(f.node) {
		errs = append(errs, fmt.Errorf("--node-id %q is not UTF-8", f.node))
	}
	if f.set.Changed("node-id") && f.server == "" {
		errs = append(errs, errors.New("--node-id belongs to --server; a bootstrap names the node itself"))
	}
	return errors.Join(errs...)
}

// load reads the bootstrap; source is where it came from.
func (f *watchFlags) load() (boot *bootstrap.Config, source string, err error) {
	switch {
	case f.server != "":
		boot, err = bootstrap.Server(f.server)
		source = "--server"
	case f.bootstrap != "":
		boot, err = bootstrap.Load(f.bootstrap, bootstrap.AllowV2())
		source = f.bootstrap
	default:
		boot, err = bootstrap.FromEnv(bootstrap.AllowV2())
		source = "the bootstrap of the environment"
	}
	if err != nil {
		return nil, "", explain(err)
	}
	if f.server != "" {
		boot.Node = &corev3.Node{Id: f.node}
	}
	return boot, source, nil
}

// explain adds what a user of the program can do about an error.
func explain(err error) error {
	switch {
	case errors.Is(err, bootstrap.ErrNoBootstrap):
		return fmt.Errorf("%w; give --bootstrap FILE or --server HOST:PORT", err)
	case strings.Contains(err.Error(), `"google_default"`):
		return fmt.Errorf("%w\nxdsctl is built without google_default; it knows insecure and tls", err)
	}
	return err
}

// config makes the client's configuration.
func (f *watchFlags) config(boot *bootstrap.Config, log *slog.Logger, trace *client.Trace) client.Config {
	c := client.Config{
		Bootstrap: boot, Logger: log, Trace: trace,
		SkipValidation: f.noValidate,
		GRPC:           transport.GRPCConfig{KeepaliveTime: orNever(f.keepalive), KeepaliveTimeout: f.patience},
	}
	if f.set.Changed("resource-timeout") {
		c.ResourceTimeout = orNever(f.resourceTimeout)
	}
	switch f.variant.value {
	case "sotw":
		c.Variant = client.VariantSotW
	case "delta":
		c.Variant = client.VariantDelta
	}
	switch f.streams.value {
	case "ads":
		c.Streams = client.StreamsAggregated
	case "per-type":
		c.Streams = client.StreamsPerType
	}
	return c
}

// orNever turns 0, which is never here, into what is never to the library.
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// level is the level of logs.
func (f *watchFlags) level() slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(f.logLevel.value)) // the flag takes no other
	return l
}
