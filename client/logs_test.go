package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/rtds"
	"github.com/xdswatch/xdswatch/testutil"
)

// logged makes the rig's log hold everything, and lists its lines of a level.
func logged(r **logBuffer) func(*client.Config) {
	return func(c *client.Config) {
		*r = &logBuffer{}
		c.Logger = slog.New(slog.NewTextHandler(*r, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
}

func (l *logBuffer) lines(with ...string) (ls []string) {
	for line := range strings.Lines(l.text()) {
		all := true
		for _, part := range with {
			all = all && strings.Contains(line, part)
		}
		if all {
			ls = append(ls, line)
		}
	}
	return ls
}

// quiet checks how many lines there are, and that each names what it has to.
func (l *logBuffer) quiet(t *testing.T, level string, most int, names ...string) {
	t.Helper()
	ls := l.lines("level=" + level)
	if len(ls) == 0 || len(ls) > most {
		t.Errorf("%d lines at %s, want some and at most %d:\n%s", len(ls), level, most, strings.Join(ls, ""))
	}
	for _, line := range ls {
		for _, name := range append(names, "server=") {
			if !strings.Contains(line, name) {
				t.Errorf("a line does not say %q: %s", name, line)
			}
		}
		if line, _, _ := strings.Cut(line, " stack="); len(line) > 3000 {
			t.Errorf("a line of %d bytes: %.100s", len(line), line)
		}
	}
}

// A minute of a dead server is a few lines, though it is dead for ever other reasons, and
// watched by a thousand on many streams.
func TestLogDeadServer(t *testing.T) {
	for _, streams := range []client.Streams{client.StreamsAggregated, client.StreamsPerType} {
		var log *logBuffer
		f := &failing{}
		inBubble(t, func(t *testing.T, r *rig) {
			for i := range 1000 {
				r.watch(fmt.Sprint("name-", i))
			}
			for _, k := range []resource.AnyType{eds.Type, lds.Type, rds.Type, rtds.Type} {
				r.watchType(k, "a")
			}
			time.Sleep(time.Minute)
			log.quiet(t, "WARN", 19, "the server cannot be reached", "error=")
			if n := len(log.lines()); n > 150 {
				t.Errorf("%d lines in all", n)
			}
			if testing.Short() {
				return // an hour of attempts is long
			}
			time.Sleep(time.Hour)
			if n := len(log.lines("level=WARN")); n > 19+6*60 {
				t.Errorf("%d warnings in an hour", n)
			}
		}, logged(&log), func(c *client.Config) { c.Transport, c.Streams = f, streams })
	}
}

// The same trouble again is no news.
func TestLogSameTrouble(t *testing.T) {
	var log *logBuffer
	inBubble(t, func(t *testing.T, r *rig) {
		r.srv.SetRefuse(true)
		r.watch("a")
		time.Sleep(time.Hour)
		log.quiet(t, "WARN", 2, "the server cannot be reached", "refused")
	}, logged(&log))
}

// That a certificate has expired is one trouble, though each attempt finds it at another time.
// spec: WATCH-4
func TestExpiredCertificateIsToldOnce(t *testing.T) {
	var log *logBuffer
	var attempts atomic.Int64
	inBubble(t, func(t *testing.T, r *rig) {
		first := time.Now().Format(time.RFC3339)
		_, rec := r.watch("a")
		time.Sleep(time.Hour)
		rec.heard(t, "failed a connection")
		if err := rec.last().Err; err == nil || !strings.Contains(err.Error(), "has expired or is not yet valid: current time "+first+" is after") {
			t.Errorf("told %v", err)
		}
		log.quiet(t, "WARN", 2, "the server cannot be reached", "has expired")
		if n := attempts.Load(); n < 100 {
			t.Errorf("%d attempts in an hour", n)
		}
	}, logged(&log), func(c *client.Config) {
		ca, err := testutil.NewCA()
		must(t, err)
		cert, err := ca.Issue(testutil.CertOptions{DNS: []string{"xds.test"}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(-time.Hour)})
		must(t, err)
		files, err := cert.WriteFiles(t.TempDir())
		must(t, err)
		pair, err := cert.TLS()
		must(t, err)
		c.Bootstrap.Servers[0].URI = "passthrough:///xds.test"
		c.Bootstrap.Servers[0].ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{CACertificateFile: files.CA}}
		c.GRPC.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			attempts.Add(1)
			mine, near := net.Pipe()
			far, theirs := net.Pipe()
			pump := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				to.Close()
			}
			go pump(near, far) // read ahead, since both ends of a handshake may be writing
			go pump(far, near)
			go func() {
				_ = tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}).Handshake() // fails
				theirs.Close()
			}()
			return mine, nil
		})}
	})
}

// A thousand handlers that panic are a few lines, each with where it happened.
func TestLogHandlerPanics(t *testing.T) {
	var log *logBuffer
	inBubble(t, func(t *testing.T, r *rig) {
		for range 1000 {
			_, err := r.c.Watch(context.Background(), cds.Type, "a", func(client.Event[any]) { panic("on purpose") })
			must(t, err)
		}
		r.clusters(r.accept(), "1", "n1", "a")
		synctest.Wait()
		ls := log.lines("level=ERROR", "a handler panicked", "error=\"on purpose\"", "logs_test.go")
		if n := len(ls); n == 0 || n > 10 {
			t.Errorf("%d lines, want some and at most 10:\n%s", n, log.text())
		}
	}, logged(&log))
}

// A storm of NACKs, each for another reason, is a line each ten seconds that says how many
// were left out.
func TestLogNACKs(t *testing.T) {
	rejecting := resource.Custom(cds.Type.TypeURL(), resource.Options{NameField: 1}, func(_ resource.Source, b []byte) (any, error) {
		return nil, fmt.Errorf("refused: %q", b)
	})
	responses := 6000 // within a minute
	if testing.Short() {
		responses = 1200
	}
	var log *logBuffer
	inBubble(t, func(t *testing.T, r *rig) {
		r.watchType(rejecting, "a")
		st := r.accept()
		flood(st, responses, func(i int) proto.Message {
			time.Sleep(time.Minute / time.Duration(responses))
			return testutil.SotW(cds.Type.TypeURL(), fmt.Sprint(i), "n", cluster("a", fmt.Sprint(i)))
		})
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if n := len(st.Requests()); n < 1000 {
			t.Errorf("%d requests are no storm", n)
		}
		log.quiet(t, "WARN", 19, "type="+cds.Type.TypeURL())
		if len(log.lines("response rejected", "error=", "version=")) == 0 || len(log.lines("omitted=")) == 0 {
			t.Errorf("the log does not say enough:\n%s", log.text())
		}
	}, logged(&log))
}

// Streams that come and go all the time are a few lines.
func TestLogFlapping(t *testing.T) {
	if testing.Short() {
		t.Skip("long: a thousand streams")
	}
	for _, answer := range []bool{false, true} {
		var log *logBuffer
		inBubble(t, func(t *testing.T, r *rig) {
			r.watch("a")
			start := time.Now()
			for i := 0; time.Since(start) < time.Minute; i++ {
				st := r.accept()
				if answer {
					r.clusters(st, "1", "n1", "a")
				}
				st.End(status.Error(codes.Unavailable, fmt.Sprint("reason ", i)))
			}
			log.quiet(t, "INFO", 2*12)
			if len(log.lines("stream ended", "error=", "reason 0")) != 1 {
				t.Errorf("the log does not say why a stream ended:\n%s", log.text())
			}
		}, logged(&log), policy(100*time.Millisecond))
	}
}

// Ten thousand deletions that are ignored are a few lines.
// spec: ERR-5
func TestLogIgnoredDeletions(t *testing.T) {
	t.Parallel()
	var log *logBuffer
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := r.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		st := r.accept()
		names := make([]string, 10_000)
		for i := range names {
			names[i] = fmt.Sprint("name-", i)
		}
		r.clusters(st, "1", "n1", names...)
		r.clusters(st, "2", "n2")
		if ls := log.lines("the server deleted a resource"); len(ls) == 0 || len(ls) > 10 || !strings.Contains(ls[0], "level=INFO") {
			t.Errorf("%d lines say that a resource is deleted: %q", len(ls), ls)
		}
		if n := len(log.lines("level=WARN")); n > 0 {
			t.Errorf("%d warnings of what is configured", n)
		}
		r.clusters(st, "3", "n3", names...)
		time.Sleep(time.Minute)
		if n := len(log.lines("is back")); n == 0 || n > 10 {
			t.Errorf("%d lines say that resources are back", n)
		}
	}, logged(&log), func(c *client.Config) { c.DeletionPolicy = client.DeletionKeep })
}

// A delta server without nonces, and one that speaks of types nobody asked for, fill no log.
func TestLogOddResponses(t *testing.T) {
	var log *logBuffer
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		for i := range 1000 {
			r.send(st, testutil.Delta(cds.Type.TypeURL(), "", nil))
			r.send(st, testutil.Delta(fmt.Sprint("test.T", i, strings.Repeat("x", 5000)), "n", nil))
		}
		synctest.Wait()
		log.quiet(t, "WARN", 10, "type="+cds.Type.TypeURL())
		if n := len(log.lines("not asked for")); n == 0 || n > 10 {
			t.Errorf("%d lines about types that were not asked for", n)
		}
		if n := len(log.text()); n > 64<<10 {
			t.Errorf("the log has %d bytes", n)
		}
	}, logged(&log), delta)
}

// Functions of the program that panic at each response, or each stream, fill no log.
func TestLogPanics(t *testing.T) {
	oh, responses := strings.Repeat("oh", 1<<12), 1000
	if testing.Short() {
		responses = 100
	}
	var log *logBuffer
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		for i := range responses {
			r.clusters(st, fmt.Sprint(i), "n", "a")
		}
		log.quiet(t, "ERROR", 15, "panicked")
		for _, what := range []string{"a trace function", "a metrics function", "a guard"} {
			if n := len(log.lines("level=ERROR", what, "ohoh")); n != 5 {
				t.Errorf("%d lines of %s, want 5", n, what)
			}
		}
	}, logged(&log), func(c *client.Config) {
		c.Trace = &client.Trace{Response: func(client.ResponseInfo) { panic(oh) }}
		c.Metrics = &client.Metrics{ResourceUpdatesInvalid: func(client.UpdateCount) { panic(oh) }, ResourceUpdatesValid: func(client.UpdateCount) { panic(oh) }}
		judged := 0
		c.Guards = map[string][]client.Guard{cds.Type.TypeURL(): {func(*client.Proposal) error {
			if judged++; judged%2 == 0 {
				panic(oh)
			}
			return nil
		}}}
	})
	for _, node := range []func(*corev3.Node) *corev3.Node{
		func(*corev3.Node) *corev3.Node { panic(oh) },
		func(n *corev3.Node) *corev3.Node { n.Id = oh + "\xff"; return n },
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.watch("a")
			for range 100 {
				r.accept().End(nil)
			}
			if ls := log.lines("level=ERROR", "Config.Node"); len(ls) != 5 || len(ls[0]) > 12_000 {
				t.Errorf("%d lines, want 5: %.100s", len(ls), ls)
			}
		}, logged(&log), policy(time.Millisecond), func(c *client.Config) { c.Node = node })
	}
}

// A backoff policy that panics leaves its stack, also without a logger.
// spec: U-8
func TestBackoffPanics(t *testing.T) {
	for _, quiet := range []bool{true, false} {
		log := captureDefault(t)
		inBubble(t, func(t *testing.T, r *rig) {
			if !quiet {
				log = r.log
			}
			x, err := r.c.Connect(r.srv.Target())
			must(t, err)
			x.Pause(false)
			x.Close()
			r.srv.SetRefuse(true)
			r.watch("a")
			time.Sleep(time.Minute)
			synctest.Wait()
			ls := log.lines("level=ERROR", "the backoff policy cannot be used", "error=mine", "stack=", "logs_test.go", "server="+r.srv.Target())
			if len(ls) != 2 {
				t.Errorf("%d lines, want one of the stream and one of the connection:\n%s", len(ls), log.text())
			}
		}, func(c *client.Config) {
			if c.Backoff = func() backoff.BackOff { panic("mine") }; quiet {
				c.Logger = nil
			}
		})
	}
}

// What panics after the end of the client is told with its server too.
func TestPanicAfterClose(t *testing.T) {
	hold := make(chan struct{})
	inBubble(t, func(t *testing.T, r *rig) {
		hold = make(chan struct{})
		r.watch("a")
		r.clusters(r.accept(), "1", "n1", "a")
		r.c.Close()
		close(hold)
		<-r.c.Done()
		r.log.holds(t, "a trace function panicked")
		if ls := r.log.lines("a trace function panicked", "server="+r.srv.Target()); len(ls) != 1 {
			t.Errorf("the server is not told: %s", r.log.text())
		}
	}, func(c *client.Config) {
		c.Trace = &client.Trace{Response: func(client.ResponseInfo) { <-hold; panic("late") }}
	})
}

// A program that has no use for lines does not pay for them: a disabled level is not
// formatted.
func TestLogDisabled(t *testing.T) {
	var made atomic.Int64
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		r.accept().End(errors.New("x"))
		time.Sleep(time.Minute)
		if n := made.Load(); n != 0 {
			t.Errorf("%d records were made", n)
		}
	}, func(c *client.Config) { c.Logger = slog.New(noLevel{&made}) })
}

// noLevel is a log handler without any level that counts what it gets.
type noLevel struct{ made *atomic.Int64 }

func (noLevel) Enabled(context.Context, slog.Level) bool { return false }
func (h noLevel) Handle(context.Context, slog.Record) error {
	h.made.Add(1)
	return nil
}
func (h noLevel) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h noLevel) WithGroup(string) slog.Handler      { return h }

// captureDefault has the default logger write into a buffer until the test is over. slog.SetDefault points
// package log there as well, and takes back neither that nor its flags.
func captureDefault(t *testing.T) *logBuffer {
	before, writer, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	captured := &logBuffer{}
	slog.SetDefault(slog.New(slog.NewTextHandler(captured, nil)))
	return captured
}

// What the bootstrap has that is not used is logged.
// spec: BOOTE-2
func TestLogNotices(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.log.holds(t, "this is not used")
		if n := len(r.log.text()); n > 2000 {
			t.Errorf("logged %d bytes, want a long notice cut", n)
		}
	}, func(c *client.Config) {
		c.Bootstrap.Notices = []string{"this is not used", strings.Repeat("k", 1<<20)}
	})
}
