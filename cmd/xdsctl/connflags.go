package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// Defaults of flags.
const (
	defaultNode            = "xdsctl"
	defaultResourceTimeout = 15 * time.Second
	defaultKeepalive       = 5 * time.Minute
	defaultPatience        = 20 * time.Second
)

// connFlags are the flags of every command that is a client of management servers.
type connFlags struct {
	bootstrap           string
	server              serverFlags
	variant, streams    choice
	resourceTimeout     time.Duration
	keepalive, patience time.Duration
	noValidate          bool
	store               string // of `xdsctl watch`; "" for none
	logLevel            choice
	set                 *pflag.FlagSet // says which were given
}

func (f *connFlags) register(set *pflag.FlagSet) {
	f.set = set
	f.variant = choice{values: []string{"sotw", "delta"}}
	f.streams = choice{values: []string{"ads", "per-type"}}
	f.logLevel = choice{"warn", []string{"debug", "info", "warn", "error"}}
	set.SortFlags = false
	set.StringVar(&f.bootstrap, "bootstrap", "", "bootstrap `FILE`: gRPC's JSON, or Envoy's JSON or YAML (default $"+bootstrap.EnvPath+", else the text in $"+bootstrap.EnvConfig+")")
	f.server.register(set)
	set.Var(&f.variant, "variant", "variant of the protocol (default as the bootstrap says; sotw with --server)")
	set.Var(&f.streams, "streams", "one stream for all types, or one for each (default as the bootstrap says; ads with --server)")
	set.DurationVar(&f.resourceTimeout, "resource-timeout", defaultResourceTimeout, "a resource of which the server says nothing for this long does not exist; 0: wait for ever")
	set.DurationVar(&f.keepalive, "keepalive", defaultKeepalive, "ping a silent server after this time, at least 10s; 0: never")
	set.DurationVar(&f.patience, "keepalive-timeout", defaultPatience, "end the connection if a ping has no answer for this time")
	set.BoolVar(&f.noValidate, "no-validate", false, "leave out the messages' own validation rules")
	set.Var(&f.logLevel, "log-level", "what is logged to standard error")
}

// check finds flags that make no sense, alone or together.
func (f *connFlags) check() error { return errors.Join(f.checkOwn(), f.server.check(f.set)) }

// checkOwn is check without the flags that belong to --server.
func (f *connFlags) checkOwn() error {
	var errs []error
	f.set.VisitAll(func(fl *pflag.Flag) {
		if d, err := f.set.GetDuration(fl.Name); err == nil && d < 0 {
			errs = append(errs, fmt.Errorf("--%s %s is negative", fl.Name, d))
		}
	})
	if f.patience == 0 {
		errs = append(errs, errors.New("--keepalive-timeout is 0; no answer comes that soon"))
	}
	if f.server.target != "" && f.bootstrap != "" {
		errs = append(errs, errors.New("--server and --bootstrap are both given; one of them says where the server is"))
	}
	if f.set.Changed("store") && f.store == "" {
		errs = append(errs, errors.New("--store is empty; want a DIR"))
	}
	if f.store != "" {
		if err := os.MkdirAll(f.store, 0o700); err != nil {
			errs = append(errs, fmt.Errorf("--store: %w", err))
		}
	}
	if f.set.Changed("bootstrap") && f.bootstrap == "" {
		errs = append(errs, errors.New("--bootstrap is empty; want a FILE"))
	}
	return errors.Join(errs...)
}

// check finds flags that make no sense beside --server, or without it.
func (f *serverFlags) check(set *pflag.FlagSet) error {
	var errs []error
	if set.Changed("server") && f.target == "" {
		errs = append(errs, errors.New("--server is empty; want HOST:PORT"))
	}
	if !utf8.ValidString(f.nodeID) {
		errs = append(errs, fmt.Errorf("--node-id %q is not UTF-8", f.nodeID))
	}
	for _, name := range serverFlagNames {
		if set.Changed(name) && f.target == "" {
			errs = append(errs, fmt.Errorf("--%s belongs to --server; a bootstrap says the same itself", name))
		}
	}
	return errors.Join(errs...)
}

// level is the level of logs.
func (f *connFlags) level() slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(f.logLevel.value)) // the flag takes no other
	return l
}
