package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/store"
	"github.com/xdswatch/xdswatch/transport"
	filetransport "github.com/xdswatch/xdswatch/transport/file"
)

// target is where a command gets resources: what the connection flags say.
type target struct {
	*connFlags
	boot   *bootstrap.Config
	source string // of boot, for errors
	plan   *plan
	notes  io.Writer // standard error

	traced func(*client.Trace) *client.Trace         // makes the client's trace of the command's; nil for none
	wrap   func(transport.Builder) transport.Builder // what the client's connections are made with; nil for none
}

// open checks the flags and reads the bootstrap. Its errors are those of usage.
func (f *connFlags) open(cmd *cobra.Command) (*target, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	return f.openChecked(cmd)
}

// openChecked is open for flags that are checked.
func (f *connFlags) openChecked(cmd *cobra.Command) (*target, error) {
	t := &target{connFlags: f, notes: cmd.ErrOrStderr()}
	var err error
	if t.boot, t.source, err = f.load(); err != nil {
		return nil, &statusError{statusUsage, err}
	}
	if t.plan, err = newPlan(t.boot); err != nil {
		return nil, t.fault(err)
	}
	return t, nil
}

// fault is an error of the bootstrap.
func (t *target) fault(err error) error {
	return &statusError{statusUsage, fmt.Errorf("%s: %w", t.source, err)}
}

// load reads the bootstrap; source is where it came from.
func (f *connFlags) load() (boot *bootstrap.Config, source string, err error) {
	switch {
	case f.server.target != "":
		boot, err = f.server.bootstrap()
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

// subscriptions are those that were given, or else those that the bootstrap asks for by itself.
func (t *target) subscriptions(args []string) ([]subscription.Given, error) {
	if len(args) == 0 {
		return t.plan.startup, nil
	}
	subs, err := parseAll(args)
	if err != nil {
		return nil, err
	}
	if left := t.plan.leftOut(subs); len(left) > 0 {
		fmt.Fprintf(t.notes, "xdsctl: %s also asks for %s, which is not watched since other subscriptions are given\n", t.source, strings.Join(left, " "))
	}
	return subs, nil
}

func parseAll(args []string) ([]subscription.Given, error) {
	var subs []subscription.Given
	var errs []error
	for _, arg := range args {
		sub, err := subscription.Parse(arg)
		if err != nil {
			errs = append(errs, err)
		}
		subs = append(subs, sub)
	}
	return subs, errors.Join(errs...)
}

// client makes the client; trace may be nil.
func (t *target) client(trace *client.Trace) (*client.Client, error) {
	log := slog.New(slog.NewTextHandler(t.notes, &slog.HandlerOptions{Level: t.level()}))
	if t.traced != nil {
		trace = t.traced(trace)
	}
	config := t.config(t.boot, log, trace)
	if t.wrap != nil { // what the client would use itself
		config.Transport = t.wrap(filetransport.NewBuilder(filetransport.Config{Logger: log}, transport.ByServer{
			GRPC: transport.NewGRPC(config.GRPC), REST: transport.NewREST(config.REST),
		}))
	}
	c, err := client.New(config)
	if err != nil {
		return nil, t.fault(err)
	}
	return c, nil
}

// closeClient closes a client. A handler or a recording whose write blocks is waited for no longer than a
// second, and a store that saves no longer than ten.
func (f *connFlags) closeClient(c *client.Client) {
	patience := time.Second
	if f.store != "" {
		patience = 10 * time.Second
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = c.Close() // it has no other result
		<-c.Done()
	}()
	select {
	case <-closed:
	case <-time.After(patience):
	}
}

// config makes the client's configuration.
func (f *connFlags) config(boot *bootstrap.Config, log *slog.Logger, trace *client.Trace) client.Config {
	c := client.Config{
		Bootstrap: boot, Logger: log, Trace: trace,
		SkipValidation: f.noValidate,
		GRPC:           transport.GRPCConfig{KeepaliveTime: orNever(f.keepalive), KeepaliveTimeout: f.patience},
	}
	if f.store != "" {
		c.Store = store.Dir(f.store, store.Options{})
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
