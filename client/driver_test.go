package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/machine"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/testutil/script"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/xdstp"
)

// tick is how much time passes with each line, as in the driver of the machine.
const tick = 10 * time.Millisecond

// driver plays a script against a client: the program's part with its methods, the
// server's with a scripted server, and what the script holds back with gates.
type driver struct {
	t           *testing.T
	script      *script.Script
	srv         *testutil.Server
	c           *client.Client
	delta       bool
	fetch       time.Duration // initial timeout of every watch; 0 for none
	kinds       map[string]resource.AnyType
	watches     map[string]*client.Watch
	collections []string // names of watches
	blocked     map[string]*gate
	authority   map[string]string // of watches of names
	seen        int               // requests that were printed
	failed      bool              // the last attempt to have a stream, or one may have

	loop    *gate // the client's loop, at a log line
	opening *gate // streams; of a manual server
	writing *gate
	workers *gate
	store   *scriptStore

	mu   sync.Mutex
	fail error           // of the stream that is being opened
	dead map[string]bool // servers, by URI
	out  []string
}

func newDriver(t *testing.T, s *script.Script) *driver {
	d := &driver{
		t: t, script: s, srv: testutil.NewServer(), delta: s.Has("server", "delta"), kinds: map[string]resource.AnyType{},
		authority: map[string]string{}, dead: map[string]bool{}, watches: map[string]*client.Watch{}, blocked: map[string]*gate{},
		loop: &gate{}, opening: &gate{}, writing: &gate{}, workers: &gate{},
		store: &scriptStore{kept: map[string][]client.StoredResource{}, gate: &gate{}},
	}
	for short, k := range script.Kinds() {
		d.kinds[short] = &scriptKind{k, d.workers}
	}
	if s.Has("client", "initial_fetch_timeout") {
		d.fetch = script.FetchTimeout
	}
	if s.Has("client", "wait-forever") {
		d.fetch = bootstrap.WaitForever
	}
	c, err := client.New(d.config(s))
	if err != nil {
		t.Fatal(err)
	}
	d.c = c
	if s.Has("server", "manual") {
		d.opening.shut()
	}
	return d
}

// uri is how a server is called; all of them are the one scripted server.
func uri(number int) string { return "passthrough:///" + strings.Repeat("@", number+1) }

func (d *driver) config(s *script.Script) client.Config {
	boot, err := bootstrap.Server(uri(0))
	if err != nil {
		d.t.Fatal(err)
	}
	boot.Node = &corev3.Node{Id: "n"}
	server := boot.Servers[0]
	server.Delta, server.PerType = d.delta, s.Has("server", "per-type")
	server.Features = bootstrap.Features{
		IgnoreResourceDeletion:        s.Has("server", "ignore_resource_deletion"),
		FailOnDataErrors:              s.Has("server", "fail_on_data_errors"),
		ResourceTimerIsTransientError: s.Has("server", "resource_timer_is_transient_error"),
		ResumeVersion:                 s.Has("server", "resume_version"),
		ExplicitWildcard:              s.Has("server", "explicit_wildcard"),
	}
	if s.Has("server", "rate_limit_settings") {
		server.RateLimit = &bootstrap.RateLimit{MaxTokens: script.RateTokens, FillRate: float64(time.Second) / float64(script.RateEvery)}
	}
	boot.Servers = serversOf(server, s.Order(""))
	boot.Authorities = authorities(s, server)
	boot.DynamicParameters.Old = s.Params(authority.OldLabel)
	boot.DynamicParameters.Authorities = map[string]map[string]string{}
	for name := range boot.Authorities {
		boot.DynamicParameters.Authorities[name] = s.Params(name)
	}
	config := client.Config{
		Bootstrap: boot, Linger: time.Second, NodeOnEveryRequest: s.Has("client", "node-always"),
		Logger:    slog.New(loopGate{d.loop}),
		Backoff:   func() backoff.BackOff { return backoff.NewConstantBackOff(math.MaxInt64 / 2) },
		Transport: gatedBuilder{d, transport.NewGRPC(transport.GRPCConfig{DialOptions: d.srv.DialOptions()})},
	}
	if s.Has("client", "store") {
		config.Store = d.store
		for _, k := range script.Kinds() {
			if k.TypeURL() != script.TypeURL("sds") {
				config.StoreTypes = append(config.StoreTypes, k.TypeURL())
			}
		}
	}
	if s.Has("client", "no-timers") {
		config.ResourceTimeout = -1
	}
	if s.Has("client", "keep-deleted") {
		config.DeletionPolicy = client.DeletionKeep
	}
	if s.Has("client", "keep-deleted-for") {
		config.DeletionPolicy = client.DeletionAfter(script.DeletionGrace)
	}
	if s.Has("client", "guarded") {
		config.Guards = map[string][]client.Guard{}
		for _, k := range script.Kinds() {
			config.Guards[k.TypeURL()] = []client.Guard{func(p *client.Proposal) error { return script.Guard(p.Held, p.Left) }}
		}
	}
	return config
}

var authorityOf = regexp.MustCompile(`xdstp://([^/ ]*)/`)

// authorities are those of a script's names.
func authorities(s *script.Script, server bootstrap.ManagementServer) map[string]bootstrap.Authority {
	found := map[string]bootstrap.Authority{}
	for _, st := range s.Steps {
		for _, m := range authorityOf.FindAllStringSubmatch(st.Input, -1) {
			found[m[1]] = bootstrap.Authority{
				Servers:                    serversOf(server, s.Order(m[1])),
				FallbackOnReachabilityOnly: s.Has("server", "fallback_on_reachability_only"),
			}
		}
	}
	return found
}

// serversOf are those of some numbers, which differ in their URIs only.
func serversOf(like bootstrap.ManagementServer, numbers []int) (servers []bootstrap.ManagementServer) {
	for _, n := range numbers {
		like.URI = uri(n)
		servers = append(servers, like)
	}
	return servers
}

func (d *driver) close() {
	for _, g := range d.blocked {
		g.open()
	}
	for _, g := range []*gate{d.loop, d.opening, d.writing, d.workers, d.store.gate} {
		g.open()
	}
	d.c.Close()
	<-d.c.Done()
	d.srv.Close()
}

// run does one input line and returns what came of it.
func (d *driver) run(input string) []string {
	d.mu.Lock()
	d.out = nil
	d.mu.Unlock()
	commands := strings.Split(input, ";")
	together := d.together(commands)
	if together {
		d.loop.shut()
		d.c.ResetBackoff() // it is logged, and so holds the loop
		synctest.Wait()
	}
	for _, command := range commands {
		d.do(strings.Fields(command))
		synctest.Wait()
	}
	if together {
		d.loop.open()
	}
	synctest.Wait()
	time.Sleep(tick)
	synctest.Wait()
	return d.happened()
}

// together says whether the commands are to reach the client's loop as one. While a wait
// between attempts runs, the loop cannot be held; nothing is sent then that this could split.
func (d *driver) together(commands []string) bool {
	streams := d.srv.Streams()
	if len(commands) == 1 || d.failed || len(streams) > 0 && over(streams[len(streams)-1]) {
		return false
	}
	return slices.ContainsFunc(commands, func(c string) bool { return strings.Contains(c, "watch ") })
}

func over(st *testutil.Stream) bool {
	select {
	case <-st.Done():
		return true
	default:
		return false
	}
}

// happened is what was told, and then the requests that came.
func (d *driver) happened() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.out
	requests := d.srv.Requests()
	for _, r := range requests[d.seen:] {
		out = append(out, script.Request(r.Stream, r.Raw, d.delta))
	}
	d.seen = len(requests)
	return out
}

func (d *driver) do(words []string) {
	verb, stream := d.target(words[0])
	switch verb {
	case "watch":
		d.watch(words[1], words[2], words[3])
	case "describe":
		if err := d.c.SetNodeParameters(script.TypeURL(words[1]), script.Values(words[2:])); err != nil {
			d.t.Fatal(err)
		}
	case "unwatch":
		d.watches[words[1]].Stop()
	case "recv":
		frame, err := script.Response(words[1:], d.delta)
		if err != nil {
			d.t.Fatal(err)
		}
		_ = stream.SendBytes(frame) // a stream that is over is not heard
	case "end":
		stream.End(ending(words[1:]))
	case "retry":
		d.failed = false
		d.c.ResetBackoff()
	case "die", "live":
		d.failed = true // when is not known
		d.mu.Lock()
		d.dead[uri(script.Number(words[1]))] = verb == "die"
		d.mu.Unlock()
	case "up":
		d.let(nil)
	case "fail":
		d.let(errors.New(strings.Join(words, " ")))
	case "sleep":
		dur, err := time.ParseDuration(words[1])
		if err != nil {
			d.t.Fatal(err)
		}
		time.Sleep(dur)
	case "block":
		d.gateOf(words[1]).shut()
	case "unblock":
		d.gateOf(words[1]).open()
	case "stall":
		d.writing.shut()
	case "flow":
		d.writing.open()
	case "slow":
		d.workers.shut()
	case "decode":
		d.workers.open()
	case "store":
		d.store.put(d.t, words[1], words[2:])
	case "stick":
		d.store.gate.shut()
	case "load":
		d.store.gate.open()
	case "dump":
		d.dump()
	default:
		d.t.Fatalf("no command %q", words[0])
	}
}

// ending is the error of an "end": status OK, or a code and a text.
func ending(words []string) error {
	if len(words) == 0 {
		return nil
	}
	var code codes.Code
	if code.UnmarshalJSON([]byte(strconv.Quote(words[0]))) == nil {
		words = words[1:]
	} else {
		code = codes.Unavailable
	}
	return status.Error(code, strings.Join(words, " "))
}

// let ends the opening of the stream that waits, and holds the next.
func (d *driver) let(fail error) {
	d.mu.Lock()
	d.fail, d.failed = fail, fail != nil
	d.mu.Unlock()
	d.opening.open()
	synctest.Wait()
	d.opening.shut()
}

// target splits "recv/2" into the command and its stream; without a number it is the
// newest.
func (d *driver) target(word string) (string, *testutil.Stream) {
	verb, number, numbered := strings.Cut(word, "/")
	streams := d.srv.Streams()
	n := len(streams)
	if numbered {
		var err error
		if n, err = strconv.Atoi(number); err != nil {
			d.t.Fatal(err)
		}
	}
	if n < 1 || n > len(streams) {
		if verb == "recv" || verb == "end" {
			d.t.Fatalf("%s: no such stream", word)
		}
		return verb, nil
	}
	return verb, streams[n-1]
}

func (d *driver) gateOf(watch string) *gate {
	if d.blocked[watch] == nil {
		d.blocked[watch] = &gate{}
	}
	return d.blocked[watch]
}

func (d *driver) watch(name, typ, resourceName string) {
	kind, g := d.kinds[typ], d.gateOf(name)
	if kind == nil {
		d.t.Fatalf("no type %q", typ)
	}
	var err error
	var opts []client.WatchOption
	if d.fetch != 0 && name != "impatient" {
		opts = append(opts, client.InitialFetchTimeout(d.fetch))
	}
	if resourceName[0] == '*' || xdstp.IsGlob(resourceName) {
		d.collections = append(d.collections, name)
		if resourceName == "**" {
			resourceName = "*"
			opts = append(opts, client.ExplicitWildcard())
		}
		d.watches[name], err = d.c.WatchAll(context.Background(), kind, resourceName, func(b client.Batch[any]) {
			for _, ev := range b.Events {
				d.print("%s: %s", name, describe(ev))
			}
			g.pass(nil)
		}, opts...)
	} else {
		authority, ok := xdstp.AuthorityOf(resourceName)
		d.authority[name] = fmt.Sprint(authority, ok)
		d.watches[name], err = d.c.Watch(context.Background(), kind, resourceName, func(ev client.Event[any]) {
			d.print("%s: %s", name, describe(ev))
			g.pass(nil)
		}, opts...)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) print(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out = append(d.out, fmt.Sprintf(format, args...))
}

func (d *driver) dump() {
	for _, s := range d.c.Dump() {
		line := fmt.Sprintf("= %s %s %s", script.Short(s.Type), s.Name, s.Status)
		if s.Raw != nil {
			line += " version=" + s.Version + beside(s.Attributes)
		}
		line += script.Stale(s.Stale)
		if s.Err != nil {
			line += " " + trouble(s.Err)
		}
		d.print("%s", line)
	}
}

func describe(ev client.Event[any]) string {
	switch ev.Kind {
	case client.EventUpdated:
		return fmt.Sprintf("updated %s %q version=%s%s%s", ev.Name, ev.Value, ev.Version, beside(ev.Attributes), script.Stale(ev.Stale))
	case client.EventDoesNotExist:
		return fmt.Sprintf("does-not-exist %s %s%s", ev.Name, ev.Reason, script.Stale(ev.Stale))
	case client.EventFailed:
		return fmt.Sprintf("failed %s %s", ev.Name, trouble(ev.Err))
	case client.EventAmbientError:
		return fmt.Sprintf("ambient-error %s %s", ev.Name, trouble(ev.Err))
	case client.EventRecovered:
		return fmt.Sprintf("ambient-error %s cleared", ev.Name)
	case client.EventSynced:
		return "synced " + ev.Name + script.Stale(ev.Stale)
	}
	return ev.Kind.String()
}

// beside writes what stands beside a value.
func beside(a *client.Attributes) string {
	if a == nil {
		return ""
	}
	return script.Attributes(a.Aliases, a.DoNotCache, a.Metadata)
}

// trouble writes an error as the driver of the machine does.
func trouble(err error) string {
	var re *client.ResourceError
	if !errors.As(err, &re) {
		return "not a resource error: " + err.Error()
	}
	switch re.Kind {
	case client.ErrorRejected, client.ErrorData:
		text := re.Err.Error()
		if s, ok := status.FromError(re.Err); ok {
			text = (&machine.StatusError{Code: int32(s.Code()), Message: s.Message()}).Error()
		}
		return fmt.Sprintf("%s: %s", re.Kind, text)
	}
	return string(re.Kind)
}
