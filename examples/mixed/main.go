// Mixed follows four resources, each of which comes from somewhere else, with one client
// and a bootstrap of Envoy's:
//
//	go run ./examples/mixed
//
// Listeners come over the aggregated stream, their secret from a file, clusters from a
// server that is polled over HTTP, and endpoints over a delta stream of their own. One sees
// where each is from, how it changes there, and the streams that this takes.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mixed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "mixed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := start(dir)
	if err != nil {
		return err
	}
	defer s.stop()
	path := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(path, s.bootstrap(), 0o600); err != nil {
		return err
	}
	boot, err := bootstrap.Load(path)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p := &program{ctx: ctx, fail: fail, boot: boot, news: make(chan string, 16), streams: make(chan client.StreamInfo, 16)}
	p.client, err = client.New(client.Config{
		Bootstrap: boot, Trace: &client.Trace{StreamUp: func(i client.StreamInfo) { p.streams <- i }},
	})
	if err != nil {
		return err
	}
	defer p.client.Close()

	return p.tell(s, out)
}
