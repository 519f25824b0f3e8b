package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/testutil"
)

// maxResident is how much memory the program may have resident, whatever one server, file or answer
// does.
const maxResident = 512 << 20

// resident is the most that a process had resident, in bytes.
func (p *process) resident() (most int) {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d kB", &most); err != nil {
		p.t.Fatal(err)
	}
	return most << 10
}

// field is a length-delimited field.
func field(num protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
}

// until reads lines up to one with a text.
func (p *process) until(text string) {
	p.t.Helper()
	for !strings.Contains(p.line(), text) {
	}
}

// Whatever comes in one answer, the program has no more resident than it may.
//
// spec: H-5 H-9
func TestCostOfHostileServers(t *testing.T) {
	race.SkipCost(t)
	path := build(t)
	if runtime.GOOS != "linux" {
		t.Skip("what is resident is read from /proc")
	}
	const size = 100 << 20
	head := field(4, []byte(clusters))
	tiny := field(2, append(field(1, []byte(clusters)), field(2, field(1, []byte("a name")))...))
	dense := func(b []byte) []byte { // a cluster of nothing but endpoints
		load := field(33, append(field(1, []byte("a")), field(2, b)...))
		return field(2, append(field(1, []byte(clusters)), field(2, append(field(1, []byte("a")), load...))...))
	}
	fill := func(piece []byte) []byte { return bytes.Repeat(piece, size/len(piece)) }
	for name, message := range map[string][]byte{
		"small resources":      append(fill(tiny), head...),
		"resources of nothing": append(dense(bytes.Repeat([]byte{0x12, 0}, 15<<19)), head...),
		"version_info":         append(field(1, fill([]byte("v"))), head...),
		"nonce":                append(field(5, fill([]byte("v"))), head...),
	} {
		t.Run(name, func(t *testing.T) {
			srv := server(t)
			p := launch(t, path, "watch", "--server", srv.Target(), "--output", "json", "--log-level", "error", "cds")
			defer p.cmd.Process.Kill()
			if err := accept(t, srv).SendBytes(message); err != nil {
				t.Fatal(err)
			}
			p.until(`"event":"error"`)
			p.within()
		})
	}
	body := `{"type_url":"` + clusters + `","version_info":"` + string(fill([]byte("v"))) + `"}`
	t.Run("version_info over HTTP", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		defer srv.Close()
		boot := envoyBootstrap(t, srv.Listener.Addr().String(), "dynamic_resources:"+pollCDS)
		p := launch(t, path, "watch", "--bootstrap", boot, "--output", "json", "--log-level", "error", "cds")
		defer p.cmd.Process.Kill()
		p.until(`"event":"error"`)
		p.within()
	})
	t.Run("version_info in a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "cds.json")
		if err := testutil.PlaceFile(file, []byte(body[:60<<20]+`"}`)); err != nil {
			t.Fatal(err)
		}
		boot := envoyBootstrap(t, "127.0.0.1:1", "dynamic_resources:\n  cds_config: {path_config_source: {path: "+file+"}}")
		p := launch(t, path, "watch", "--bootstrap", boot, "--output", "json", "--log-level", "error", "cds")
		defer p.cmd.Process.Kill()
		p.until(`"event":"error"`)
		p.within()
	})
}

// within sees that the process has no more resident than it may.
func (p *process) within() {
	p.t.Helper()
	most := p.resident()
	p.t.Logf("%d MiB resident", most>>20)
	if most > maxResident {
		p.t.Errorf("%d MiB are resident, want at most %d", most>>20, maxResident>>20)
	}
}
