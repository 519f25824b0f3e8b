package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/replay"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
)

const replayLong = `Serve a recording, or resource files, as a management server: aggregated and per type, in state of
the world and delta, through the caches of go-control-plane; with TLS if --cert and --key are given.
Every node has the same.

PATH is what xdsctl record wrote; or a file or a directory with resources, as for xdsctl validate.

Of a recording the server first has what was said first of each type. What came later it has later, at
the pace of the recording, from when the first client opens a stream; and in the end it stays with what
was said last. Resources have the versions of the recording, and secrets are as they were redacted.

Files are followed: a change is served once they have not changed for a moment. While one cannot be
read the server stays with what it has. Versions are those that the files give, or else hashes.

The first line of output is {"event":"listening","address":ADDRESS}; then each state is told by
{"time","event":"state","types":[{type,version,resources}]} with the number of resources. Names without
a resource are left unanswered or out, as go-control-plane does. Globs, lists, redirects and aliases are
served. So are times to live, to clients that know them: what has one is kept alive by heartbeats while it
is there.

Exit status
  0  interrupted
  1  failed while running: the files cannot be read, or the address is not free
  2  bad usage`

const replayExample = `  # A server made of files
  xdsctl replay --listen 127.0.0.1:18000 ./resources

  # What a server said, ten times as fast
  xdsctl replay --listen 127.0.0.1:18000 --speed 10 server.jsonl`

// replayFlags are the flags of `xdsctl replay`.
type replayFlags struct {
	tlsFlags
	listen string
	speed  float64
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:                   "replay [flags] PATH",
		Short:                 "Serve a recording or files as a management server",
		Long:                  replayLong,
		Example:               replayExample,
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one PATH")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(f.speed >= 0) { // NaN too
				return fmt.Errorf("--speed %g: want 0 or more", f.speed)
			}
			if err := listenFault(f.listen); err != nil {
				return err
			}
			secured, err := f.secured()
			if err != nil {
				return err
			}
			if err := serve(cmd, f, secured, args[0]); err != nil {
				return &statusError{statusFailed, err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "`ADDRESS` to listen on; with port 0 a free one")
	cmd.Flags().Float64Var(&f.speed, "speed", 1, "how many times as fast as it was a recording is replayed; 0: its end at once")
	cmd.Flags().StringVar(&f.cert, "cert", "", "serve with TLS: PEM `FILE` of the server's certificate")
	cmd.Flags().StringVar(&f.key, "key", "", "PEM `FILE` of its private key")
	cmd.Flags().StringVar(&f.caCert, "ca-cert", "", "PEM `FILE` of the authorities of clients' certificates, which clients then need")
	outputFlag(cmd.Flags(), "json, as it always is: one object a line", "json")
	return cmd
}

// secured is the TLS of the server; nil for plaintext.
func (f *replayFlags) secured() (*tls.Config, error) {
	c, err := f.config()
	if c == nil {
		return nil, err
	}
	if f.cert == "" {
		return nil, errors.New("--ca-cert belongs to --cert and --key")
	}
	if c.ClientCAs = c.RootCAs; c.ClientCAs != nil {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// serve is `xdsctl replay` behind its flags.
func serve(cmd *cobra.Command, f replayFlags, secured *tls.Config, path string) error {
	source, err := replay.Open(path)
	if err != nil {
		return err
	}
	for _, fault := range source.Faults {
		fmt.Fprintf(cmd.ErrOrStderr(), "xdsctl: %s: %v; it is left out\n", path, fault)
	}
	r := &replayer{Command: cmd, server: replay.NewServer(secured)}
	var first recording.State
	moments := source.Moments
	switch {
	case source.Files != nil:
		if first, err = source.Files.Read(); err != nil {
			return err
		}
	case f.speed == 0:
		first, moments = moments[len(moments)-1].State, nil
	default:
		first, moments = moments[0].State, moments[1:]
	}
	lis, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	if err := r.print(listening{"listening", lis.Addr().String()}); err != nil {
		lis.Close()
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	var broken error // why nothing is served any more
	var serving sync.WaitGroup
	serving.Go(func() {
		broken = r.server.Serve(lis)
		cancel()
	})
	err = r.set(first)
	if err == nil && source.Files != nil {
		err = r.follow(ctx, source.Files)
	} else if err == nil {
		err = r.play(ctx, moments, f.speed)
	}
	r.server.Stop()
	serving.Wait()
	return errors.Join(err, broken)
}

type replayer struct {
	*cobra.Command
	server *replay.Server
}

// listening is the first line of output.
type listening struct {
	Event   string `json:"event"`
	Address string `json:"address"`
}

// served is a state that is served.
type served struct {
	report.Head
	Types []servedType `json:"types"`
}

type servedType struct {
	Type      string `json:"type"`
	Version   string `json:"version"`
	Resources int    `json:"resources"`
}

func (r *replayer) print(v any) error { return report.WriteLine(r.OutOrStdout(), v) }

// set serves a state and tells it.
func (r *replayer) set(s recording.State) error {
	if err := r.server.Set(s); err != nil {
		return err
	}
	line := served{Head: head("state"), Types: []servedType{}}
	for _, url := range slices.Sorted(maps.Keys(s)) {
		line.Types = append(line.Types, servedType{url, s[url].Version, len(s[url].Resources)})
	}
	return r.print(line)
}

// paced is when something happens at a speed, a hundred years at the most: what is later than a Duration can say
// would be in the past.
func paced(after time.Duration, speed float64) time.Duration {
	const century = 100 * 365 * 24 * time.Hour
	return time.Duration(min(float64(after)/speed, float64(century)))
}

// play serves the later states of a recording at their times, until ctx ends.
func (r *replayer) play(ctx context.Context, moments []recording.Moment, speed float64) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.server.Begun:
	}
	begin := time.Now()
	for _, m := range moments {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(begin.Add(paced(m.After, speed)))):
		}
		if err := r.set(m.State); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// follow serves what files become, until ctx ends.
func (r *replayer) follow(ctx context.Context, files *replay.Files) error {
	for files.Changed(ctx) == nil {
		state, err := files.Read()
		if err != nil {
			fmt.Fprintf(r.ErrOrStderr(), "xdsctl: what is served stays, since files cannot be read: %s\n", problem(err))
			continue
		}
		if err := r.set(state); err != nil {
			return err
		}
	}
	return nil
}
