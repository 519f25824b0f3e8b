package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/statuspage"
	"github.com/xdswatch/xdswatch/view"
)

const uiLong = `Serve a page for a browser about what a server sends: servers and streams, resources with their
contents, watches, and the last exchanges.

SUBSCRIPTION is written as for xdsctl watch. A single lds:NAME, rds:NAME or cds:NAME, or all, is
followed through all that it names, as by xdsctl resolve, and the page also shows what that waits for.

The first line of output says the address: "listening on URL", or with -o json
{"event":"listening","address":ADDRESS}. Whoever reaches the address sees the page: it has no
authentication. Secrets are redacted. With ?format=json its pages are JSON, and at /config_dump is
Envoy's.

Exit status
  0  stopped as asked
  1  failed while running: the address is not free
  2  bad usage or a bad bootstrap`

const uiExample = `  # All clusters and listeners of a server
  xdsctl ui --server localhost:18000 --listen 127.0.0.1:9901 cds lds

  # Everything that a proxy would be given
  xdsctl ui --server localhost:18000 --listen 127.0.0.1:9901 all`

// uiFlags are the flags of `xdsctl ui`.
type uiFlags struct {
	connFlags
	runFlags
	listen, host string
	output       *choice
}

func newUI() *cobra.Command {
	var f uiFlags
	cmd := &cobra.Command{
		Use:                   "ui [flags] [SUBSCRIPTION ... | ROOT]",
		Short:                 "Show what a server sends in a browser",
		Long:                  uiLong,
		Example:               uiExample,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return ui(cmd, &f, args) },
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *uiFlags) register(set *pflag.FlagSet) {
	f.connFlags.register(set)
	set.StringVar(&f.listen, "listen", "127.0.0.1:0", "`ADDRESS` of the page; with port 0 a free one")
	set.StringVar(&f.host, "host", "", "of a ROOT choose the virtual host of this `HOST`, as gRPC does")
	set.DurationVar(&f.stopAfter, "for", 0, "stop after this time; 0 is to run until interrupted")
	f.output = outputFlag(set, "how the address is told: text for people, json for programs", "text", "json")
}

// shown is what a page shows.
type shown struct {
	client *client.Client
	views  iter.Seq[*view.View] // nil for none
	close  func()
}

// ui is `xdsctl ui` behind its flags.
func ui(cmd *cobra.Command, f *uiFlags, args []string) error {
	if err := listenFault(f.listen); err != nil {
		return err
	}
	t, err := f.open(cmd)
	if err != nil {
		return err
	}
	var rec statuspage.Recorder
	t.traced = rec.Trace
	lis, err := net.Listen("tcp", f.listen)
	if err != nil {
		return &statusError{statusFailed, err}
	}
	defer lis.Close()
	s, err := f.show(cmd, t, args)
	if err != nil {
		return err
	}
	defer s.close()
	if err := f.tell(cmd, lis.Addr()); err != nil {
		return &statusError{statusFailed, err}
	}
	server := &http.Server{
		Handler:           statuspage.New(s.client, statuspage.Config{Recorder: &rec, Views: s.views}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		err = server.Serve(lis)
	}()
	f.wait(cmd, failed, nil)
	_ = server.Close() // what it serves is not waited for
	if <-failed; !errors.Is(err, http.ErrServerClosed) {
		return &statusError{statusFailed, err}
	}
	return nil
}

// show begins what the arguments ask for.
func (f *uiFlags) show(cmd *cobra.Command, t *target, args []string) (*shown, error) {
	if len(args) == 1 {
		if root, all, err := parseRoot(args[0], f.host); err == nil {
			return showView(cmd.Context(), t, root, all)
		} else if f.host != "" {
			return nil, err
		}
	}
	if f.host != "" {
		return nil, errors.New("--host is for a single ROOT")
	}
	subs, err := t.subscriptions(args)
	if err != nil {
		return nil, err
	}
	if len(subs) == 0 {
		return nil, fmt.Errorf("nothing to show: %s asks for nothing by itself; give a SUBSCRIPTION such as cds or cds:foo, or a ROOT such as all", t.source)
	}
	s, err := newSession(t, silent{}, false)
	if err != nil {
		return nil, err
	}
	s.begin(subs)
	s.tellFaults()
	return &shown{client: s.client, close: s.close}, nil
}

// tellFaults tells what subscriptions could not begin.
func (s *session) tellFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.subs {
		if sub.err != nil {
			fmt.Fprintf(s.notes, "xdsctl: %s\n", problem(sub.err))
		}
	}
}

// showView begins the view of a root.
func showView(ctx context.Context, t *target, root view.Root, all bool) (*shown, error) {
	r := newResolver(t, silent{}, false)
	if err := r.start(ctx, root, all); err != nil {
		return nil, err
	}
	return &shown{client: r.client, views: r.views(), close: r.close}, nil
}

// tell says where the page is.
func (f *uiFlags) tell(cmd *cobra.Command, at net.Addr) error {
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		fmt.Fprintf(cmd.ErrOrStderr(), "xdsctl: %s is not a loopback address, and the page has no authentication\n", at)
	}
	if f.output.value == "json" {
		return report.WriteLine(cmd.OutOrStdout(), listening{"listening", at.String()})
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "listening on http://%s/\n", at)
	return err
}
