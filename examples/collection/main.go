// Collection watches the endpoints of a service, each of which is a resource of its own, by
// one glob (xRFC TP1):
//
//	go run ./examples/collection
//
// One sees them come, change and go, each change of the server's as one batch. The first
// one ends with the news that the first state is complete.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "collection:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	server, err := testutil.NewCollectionServer()
	if err != nil {
		return err
	}
	defer server.Stop()
	const delta = true // the variant in which a server can say that a member is gone
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap(delta, "mesh")})
	if err != nil {
		return err
	}
	defer c.Close()

	if err := serve(server, "a:8080", "b:8080"); err != nil {
		return err
	}
	batches := make(chan string, 16)
	if _, err := watcher.WatchAll(ctx, c, leds.Type, service+"*", tell(batches)); err != nil {
		return err
	}
	for _, change := range []func() error{
		func() error { return nil }, // what is there already
		func() error { return serve(server, "b:9090", "c:8080") },
		func() error { remove(server, "a", "c"); return nil },
		func() error { remove(server, "b"); return nil },
	} {
		if err := change(); err != nil {
			return err
		}
		select {
		case text := <-batches:
			fmt.Fprintln(out, text)
		case <-ctx.Done():
			return fmt.Errorf("no batch came: %w", ctx.Err())
		}
	}
	return nil
}

// tell makes a handler that writes what has changed into one line for each response, of
// which a large one comes in several batches.
func tell(lines chan<- string) func(watcher.Batch[*endpointv3.LbEndpoint]) {
	var news []string
	return func(b watcher.Batch[*endpointv3.LbEndpoint]) {
		for _, ev := range b.Events {
			id := strings.TrimPrefix(ev.Name, service)
			switch ev.Kind {
			case client.EventUpdated:
				news = append(news, fmt.Sprintf("%s is at %d", id, port(ev.Value)))
			case client.EventDoesNotExist:
				news = append(news, id+" is gone")
			case client.EventSynced:
				news = append(news, "synced")
			case client.EventFailed, client.EventAmbientError:
				news = append(news, fmt.Sprintf("%s: %v: %v", id, ev.Kind, ev.Err))
			case client.EventRecovered:
				news = append(news, id+" is well again")
			}
		}
		if b.Last {
			lines <- strings.Join(news, ", ")
			news = nil
		}
	}
}
