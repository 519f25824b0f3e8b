package examples_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/examples/customtype/flagsv1"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/watcher"
)

// flags is the resource type of the message FeatureFlags, whose name is in field 1. What the check
// refuses is NACKed with its text, and the value that the program has stays.
var flags = resource.With(
	resource.Proto[*flagsv1.FeatureFlags](resource.Options{NameField: 1}),
	func(f *flagsv1.FeatureFlags) error {
		if len(f.GetFlags()) > 100 {
			return errors.New("more than 100 flags")
		}
		return nil
	})

// followFlags calls apply with the flags of a service, now and when they change.
func followFlags(ctx context.Context, c *client.Client, service string, apply func(map[string]bool)) (*client.Watch, error) {
	return watcher.Watch(ctx, c, flags, service, func(ev watcher.Event[*flagsv1.FeatureFlags]) {
		switch ev.Kind {
		case client.EventUpdated:
			apply(ev.Value.GetFlags())
		case client.EventDoesNotExist:
			apply(nil)
		case client.EventFailed, client.EventAmbientError:
			slog.WarnContext(ctx, "flags", "service", ev.Name, "error", ev.Err)
		}
	})
}

func Example_customType() {
	m := must(testutil.NewCollectionServer())
	defer m.Stop()
	c := must(client.New(client.Config{Bootstrap: m.Bootstrap(false)}))
	defer c.Close()
	switched := make(chan map[string]bool, 16)
	w := must(followFlags(ctx, c, "checkout", func(f map[string]bool) { switched <- f }))
	defer w.Stop()

	for _, on := range []bool{true, false} {
		check(m.Set(testutil.Wrapped("checkout", "", &flagsv1.FeatureFlags{
			Name: "checkout", Flags: map[string]bool{"new-basket": on},
		})))
		fmt.Println(<-switched)
	}
	// Output:
	// map[new-basket:true]
	// map[new-basket:false]
}
