package store

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// watcherArg makes this program a process of [TestKilledClients].
const watcherArg = "watch"

// watch is a client with a store, that says what it is told: a line for each event, and one for each
// batch. It ends when it is killed.
func watch(path, server string) error {
	boot, err := bootstrap.Server(server)
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Bootstrap: boot, Store: Dir(path, Options{})})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	_, err = c.WatchAll(context.Background(), cds.Type, "*", func(b client.Batch[any]) {
		for _, ev := range b.Events {
			cluster, _ := ev.Value.(*clusterv3.Cluster)
			fmt.Fprintf(out, "%d %s %s %t\n", ev.Kind, ev.Name, cluster.GetAltStatName(), ev.Stale)
		}
		out.Flush()
	})
	if err != nil {
		return err
	}
	select {}
}

// told is a line of a watcher.
type told struct {
	kind        client.EventKind
	name, value string
	stale       bool
}

// watcher is a process that watches.
type watcher struct {
	cmd   *exec.Cmd
	lines chan told // closed when it has ended
	holds map[string]told
}

func startWatcher(t *testing.T, path, server string) *watcher {
	w := &watcher{cmd: exec.Command(os.Args[0], watcherArg, path, server), lines: make(chan told, 1<<16), holds: map[string]told{}}
	out, err := w.cmd.StdoutPipe()
	must(t, err)
	w.cmd.Stderr = os.Stderr
	must(t, w.cmd.Start())
	go func() {
		defer close(w.lines)
		for said := bufio.NewScanner(out); said.Scan(); {
			// A line that the kill cut short says nothing.
			if f := strings.Split(said.Text(), " "); len(f) == 4 && (f[3] == "true" || f[3] == "false") {
				kind, _ := strconv.Atoi(f[0])
				w.lines <- told{client.EventKind(kind), f[1], f[2], f[3] == "true"}
			}
		}
	}()
	return w
}

// hear takes a line, and says false if none came until then.
func (w *watcher) hear(until <-chan time.Time) (l told, ok bool) {
	select {
	case l, ok = <-w.lines:
	case <-until:
	}
	switch l.kind {
	case client.EventUpdated:
		w.holds[l.name] = l
	case client.EventDoesNotExist:
		delete(w.holds, l.name)
	}
	return l, ok
}

// kill ends the process at once, and takes what it had said.
func (w *watcher) kill(t *testing.T, check func(told)) {
	must(t, w.cmd.Process.Kill())
	for {
		l, ok := w.hear(nil)
		if !ok {
			break
		}
		check(l)
	}
	_ = w.cmd.Wait()
}

// truth is what a server has ever said.
type truth struct {
	server *testutil.ManagementServer
	now    map[string]string
	ever   map[string]bool // names with values
	set    int
}

// next has the server say something else: other values, some names fewer and others more, and maybe one
// that is refused.
func (s *truth) next(t *testing.T, refused bool) {
	s.set++
	s.now = map[string]string{}
	var all []proto.Message
	if refused {
		all = append(all, &clusterv3.Cluster{Name: "name-5", AltStatName: "refused", ConnectTimeout: durationpb.New(-time.Second)})
	}
	for i := range 300 {
		name, value := fmt.Sprint("name-", 6+i+s.set%7), fmt.Sprintf("%d.%d", s.set, i)
		s.now[name], s.ever[name+" "+value] = value, true
		all = append(all, &clusterv3.Cluster{
			Name: name, AltStatName: value, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: testutil.ADS()},
		})
	}
	must(t, s.server.Set(fmt.Sprint(s.set), all...))
}

// written is how many bytes the files of a directory have.
func written(t *testing.T, path string) (n int64) {
	for _, name := range files(t, path) {
		if info, err := os.Stat(name); err == nil { // it may be replaced meanwhile
			n += info.Size()
		}
	}
	return n
}

// Processes with a store are killed at any point of their loads. One is started while no server can be
// reached, and has values that were accepted, all of them stale, or none. The next is started with a server
// that says something else, and has that.
//
// spec: LKG-3 LKG-5 LKG-7 LKG-9
func TestKilledClients(t *testing.T) {
	if testing.Short() {
		t.Skip("long: processes that are killed")
	}
	t.Parallel()
	server, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	must(t, err)
	defer server.Stop()
	s := &truth{server: server, ever: map[string]bool{}}
	s.next(t, false)
	path := t.TempDir()
	check := func(l told) {
		t.Helper()
		if l.kind == client.EventUpdated && !s.ever[l.name+" "+l.value] {
			t.Errorf("told of %s as %q, which nobody accepted", l.name, l.value)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	started := 0 // with values of the store
	for round := range 6 {
		// Changes come while the store saves, which begins two seconds after the first.
		before := written(t, path)
		w := startWatcher(t, path, server.Addr())
		var end <-chan time.Time
		change := time.NewTicker(40 * time.Millisecond)
		for running := true; running; {
			select {
			case <-change.C:
				s.next(t, random.IntN(4) == 0)
				if end == nil && written(t, path) != before {
					end = time.After(time.Duration(random.IntN(1200)) * time.Millisecond)
				}
			case <-end:
				running = false
			}
		}
		change.Stop()
		w.kill(t, check)

		server.Stop()
		w = startWatcher(t, path, server.Addr())
		for {
			l, ok := w.hear(time.After(20 * time.Second))
			if !ok {
				t.Fatalf("round %d: a start without a server is told nothing for long", round)
			}
			check(l)
			if l.kind == client.EventUpdated && !l.stale {
				t.Errorf("%s is told as what a server says, and there is none", l.name)
			}
			if l.kind != client.EventUpdated && l.name == "*" {
				break
			}
		}
		w.kill(t, check)
		t.Logf("round %d: %d values are known without a server", round, len(w.holds))
		if len(w.holds) > 0 {
			started++
		}

		s.next(t, false)
		must(t, server.Restart(true))
		w = startWatcher(t, path, server.Addr())
		fresh := func() bool {
			return len(w.holds) == len(s.now) && !slices.ContainsFunc(slices.Collect(maps.Values(w.holds)), func(l told) bool {
				return l.stale || s.now[l.name] != l.value
			})
		}
		for limit := time.After(30 * time.Second); !fresh(); {
			l, ok := w.hear(limit)
			if !ok {
				t.Fatalf("round %d: the client holds %d values, and not those %d that the server says", round, len(w.holds), len(s.now))
			}
			check(l)
		}
		time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond) // the save of this may be cut too
		w.kill(t, check)
	}
	if started == 0 { // on a slow machine most saves are cut
		t.Error("no start without a server had values of the store")
	}
}
