// Customtype watches resources of a type that is not Envoy's: FeatureFlags, which is
// described in flagsv1/flags.proto and made a resource type by one line, below.
//
//	go run ./examples/customtype
//
// One sees the flags of a service "checkout" as they are switched, and how a resource
// that its Validate refuses is not handed over: the flags that were good stay.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/examples/customtype/flagsv1"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/watcher"
)

// Flags is the resource type: its name stands in field 1 of the message.
var Flags = resource.Proto[*flagsv1.FeatureFlags](resource.Options{NameField: 1})

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "customtype:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	server, err := serveFlags(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	boot, err := bootstrap.Server(server.lis.Addr().String())
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Bootstrap: boot})
	if err != nil {
		return err
	}
	defer c.Close()
	return watchFlags(ctx, c, server, out)
}

// watchFlags switches flags at the server and waits for each change to arrive.
func watchFlags(ctx context.Context, c *client.Client, server *flagServer, out io.Writer) error {
	events := make(chan watcher.Event[*flagsv1.FeatureFlags], 16)
	if _, err := watcher.Watch(ctx, c, Flags, "checkout", func(ev watcher.Event[*flagsv1.FeatureFlags]) {
		events <- ev
	}); err != nil {
		return err
	}
	for _, step := range []struct {
		flag string
		on   bool
		want client.EventKind
	}{
		{"new-basket", true, client.EventUpdated},
		{"new-basket", false, client.EventUpdated},
		{"", true, client.EventAmbientError},
		{"dark-mode", true, client.EventUpdated},
	} {
		f := &flagsv1.FeatureFlags{Name: "checkout", Flags: map[string]bool{step.flag: step.on}}
		if err := server.set(f); err != nil {
			return err
		}
		select {
		case ev := <-events:
			fmt.Fprintf(out, "%s %v: %s\n", ev.Name, ev.Kind, text(ev))
			if ev.Kind != step.want {
				return fmt.Errorf("%v: got %v, want %v", f, ev.Kind, step.want)
			}
		case <-ctx.Done():
			return fmt.Errorf("%v: no event: %w", f, ctx.Err())
		}
	}
	return nil
}

// text is the value of an event, or else what is wrong.
func text(ev watcher.Event[*flagsv1.FeatureFlags]) string {
	if ev.Err != nil {
		return errors.Unwrap(ev.Err).Error()
	}
	return fmt.Sprint(ev.Value.GetFlags())
}
