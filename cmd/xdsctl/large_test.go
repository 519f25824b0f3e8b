package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/testutil"
)

// Large messages come one after another and are read so, however many streams and servers there are.
//
// spec: H-5
func TestCostOfLargeMessages(t *testing.T) {
	race.SkipCost(t)
	path := build(t)
	if runtime.GOOS != "linux" {
		t.Skip("what is resident is read from /proc")
	}
	kinds := []string{"lds", "rds", "cds", "eds", "sds", "rtds", "srds", "ecds"}
	// message is a response of 100 MB of small resources of a type.
	message := func(url string) []byte {
		tiny := field(2, append(field(1, []byte(url)), field(2, field(1, bytes.Repeat([]byte("n"), 700)))...))
		return append(bytes.Repeat(tiny, 100<<20/len(tiny)), append(field(4, []byte(url)), field(5, []byte("1"))...)...)
	}
	for _, atOnce := range []bool{false, true} {
		t.Run(fmt.Sprintf("streams of one server, at once %v", atOnce), func(t *testing.T) {
			srv := server(t)
			args := []string{"watch", "--server", srv.Target(), "--output", "json", "--log-level", "error", "--streams", "per-type"}
			for _, kind := range kinds {
				args = append(args, kind+":a")
			}
			p := launch(t, path, args...)
			defer p.cmd.Process.Kill()
			sendAll(t, srv, len(kinds), atOnce, message)
			p.within()
		})
	}
	t.Run("servers", func(t *testing.T) {
		const n = 8
		var authorities []string
		args := []string{"watch", "--output", "json", "--log-level", "error"}
		done := make(chan struct{})
		for i := range n {
			srv := server(t)
			authorities = append(authorities, fmt.Sprintf(`"a%d": {"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}]}`, i, srv.Target()))
			args = append(args, fmt.Sprintf("cds:xdstp://a%d/envoy.config.cluster.v3.Cluster/a", i))
			go func() {
				sendAll(t, srv, 1, false, message)
				done <- struct{}{}
			}()
		}
		boot := filepath.Join(t.TempDir(), "bootstrap.json")
		if err := os.WriteFile(boot, []byte(`{"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}], "authorities": {`+strings.Join(authorities, ",")+`}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		p := launch(t, path, append(args, "--bootstrap", boot)...)
		defer p.cmd.Process.Kill()
		for range n {
			<-done
		}
		p.within()
	})
}

// sendAll sends a message on each of the next streams, and waits for the responses to them.
func sendAll(t *testing.T, srv *testutil.Server, streams int, atOnce bool, message func(url string) []byte) {
	var answers sync.WaitGroup
	for range streams {
		st, first := acceptFirst(t, srv)
		b := message(first.TypeURL())
		play := func() error { return st.SendBytes(b) }
		answers.Go(func() {
			if atOnce {
				if err := play(); err != nil {
					t.Error(err)
				}
			}
			if r, err := st.Next(patient(t)); err != nil || r.Nonce() != "1" {
				t.Errorf("the response to a large message is %v (%v)", r, err)
			}
		})
		if !atOnce {
			if err := play(); err != nil {
				t.Error(err)
			}
		}
	}
	answers.Wait()
}
