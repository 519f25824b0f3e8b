// Command xdsctl is to xDS what grpcurl is to gRPC: it subscribes to any management server
// and shows what arrives. See `xdsctl watch --help`.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc/grpclog"
)

func main() {
	if os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == "" {
		holdMemoryDown()
	}
	// Trouble with connections is told by events; gRPC would write it to standard error too.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	// A reader that went away is an error of the next write, and not a sudden end.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }()
	select {
	case status := <-ended:
		os.Exit(status)
	case <-ctx.Done():
	}
	select {
	case status := <-ended:
		os.Exit(status)
	case <-time.After(endTime): // nobody takes its output, or it computes for long
		fmt.Fprintln(os.Stderr, "xdsctl: interrupted")
		os.Exit(statusFailed)
	}
}

// endTime is how long a command may take to end after an interrupt.
const endTime = 2 * time.Second
