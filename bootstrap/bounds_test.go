//go:build unix

package bootstrap_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/internal/yamljson"
)

// What a bootstrap's aliases stand for is bounded, also where they are strings, which count as
// one node for the library.
//
// spec: H-10
func TestAliasesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("a: &a " + strings.Repeat("x", 100_000) + "\nnode:\n  metadata:\n    list:\n")
	for range 50_000 {
		b.WriteString("    - *a\n")
	}
	_, err := bootstrap.Parse("boot", []byte(b.String()))
	if want := "boot: its aliases stand for more than the limit of 8388608 bytes"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	few := "a: &a x:1\nxds_servers: [{server_uri: *a, channel_creds: [{type: insecure}]}]\n"
	if boot := parse(t, few); boot.Servers[0].URI != "x:1" {
		t.Errorf("an alias is read as %q", boot.Servers[0].URI)
	}
}

// A bootstrap in YAML has a bound for its parts, each of which takes some hundred bytes while it is read.
//
// spec: H-10
func TestPartsAreBounded(t *testing.T) {
	race.SkipCost(t)
	for piece, parts := range map[string]int{"- #a\n": 3, "-\n": 1, "- a\n": 2, "- a: b\n": 3} {
		const most = 192 << 20
		var err error
		allowed := min(yamljson.MaxParts/parts-10, (2<<20)/len(piece)-10)
		text := []byte("a:\n" + strings.Repeat(piece, allowed))
		if peak := heapsize.While(func() { _, err = bootstrap.Parse("boot", text) }); peak > most || err == nil || strings.Contains(err.Error(), "parts") {
			t.Errorf("%d times %q: the heap grew to %d MiB, error %v", allowed, piece, peak>>20, err)
		}
		if allowed = yamljson.MaxParts / parts; len(piece)*(allowed+10) > 2<<20 {
			continue
		}
		_, err = bootstrap.Parse("boot", []byte("a:\n"+strings.Repeat(piece, allowed+1)))
		if err == nil || !strings.Contains(err.Error(), "parts of YAML, and the limit is 450000") {
			t.Errorf("%d times %q: %v", allowed+1, piece, err)
		}
	}
}

// Of very many faults the first are told, and that there are more.
//
// spec: H-10
func TestFaultsAreBounded(t *testing.T) {
	for entries, want := range map[int]int{400: 800, 500: 1000, 600_000: 1001} {
		if entries > 1000 && testing.Short() {
			continue // long: a document of nearly two mebibytes
		}
		_, err := bootstrap.Parse("boot", []byte(`{"xds_servers":[{}`+strings.Repeat(",{}", entries-1)+`]}`))
		lines := strings.Split(fmt.Sprint(err), "\n")
		if len(lines) != want || lines[0] != "boot: xds_servers[0].server_uri: required" {
			t.Errorf("%d entries: %d faults, the first is %s", entries, len(lines), lines[0])
		}
		if last := lines[len(lines)-1]; (last == "boot: there are more than 1000 faults") != (want > 1000) {
			t.Errorf("%d entries: the last fault is %s", entries, last)
		}
	}
}

// Each notice is a line in a log.
//
// spec: H-10
func TestNoticesAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"insecure"}]}]`)
	for i := range 2000 {
		fmt.Fprintf(&text, `,"k%d":1`, i)
	}
	notices := parse(t, text.String()+"}").Notices
	if last := notices[len(notices)-1]; len(notices) != 1001 || last != "boot: there are more than 1000 notices" {
		t.Errorf("%d notices, the last is %s", len(notices), last)
	}
}

// A bootstrap has to be a regular file of some size, and so has one of Secrets.
//
// spec: H-10
func TestBootstrapFileBounds(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	text := []byte("{}" + strings.Repeat(" ", 2<<20))
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(large, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "not a regular file", dir: "not a regular file", large: "larger than the limit of 2097152 bytes"} {
		_, err := bootstrap.Load(path)
		if _, ok := errors.AsType[*fs.PathError](err); !ok || !strings.HasSuffix(err.Error(), path+": "+want) {
			t.Errorf("error %v, want that %s is %s", err, path, want)
		}
	}
	if _, err := bootstrap.Parse("boot", text); err == nil || err.Error() != "boot: larger than the limit of 2097152 bytes" {
		t.Errorf("a text: %v", err)
	}
	doc, _ := sdsDoc(t, strings.Replace(pairOfFile, "DIR/pair", pipe, 1)+", "+systemRoots, nil)
	if _, err := bootstrap.Parse("envoy", []byte(doc)); err == nil || !strings.Contains(err.Error(), "cannot be read: not a regular file") {
		t.Errorf("a pipe of Secrets: %v", err)
	}
}

// Authorities without servers of their own have the top-level ones, each, which a short document could make millions
// of.
//
// spec: H-10 BOOT-6
func TestInheritanceIsBounded(t *testing.T) {
	document := func(servers, authorities int) string {
		const server = `{"server_uri": "x:1", "channel_creds": [{"type": "insecure"}]}`
		var b strings.Builder
		b.WriteString(`{"xds_servers": [` + server + strings.Repeat(", "+server, servers-1) + `], "authorities": {"own": {"xds_servers": [` + server + `]}`)
		for i := range authorities {
			fmt.Fprintf(&b, `, "%d": {}`, i)
		}
		return b.String() + "}}"
	}
	boot := parse(t, document(64, 1024))
	if got := len(boot.Authorities["7"].Servers); got != 64 {
		t.Errorf("an authority has %d servers", got)
	}
	const want = "uthorities: 1025 authorities have no servers of their own, and so each the 64 top-level ones: together over 65536"
	if _, err := bootstrap.Parse("boot", []byte(document(64, 1025))); err == nil || err.Error() != "boot: a"+want {
		t.Errorf("error %v", err)
	}
	own := &bootstrap.Config{Servers: boot.Servers, Authorities: map[string]bootstrap.Authority{}}
	for i := range 1025 {
		own.Authorities[fmt.Sprint(i)] = bootstrap.Authority{}
	}
	if err := own.Validate(); err == nil || err.Error() != "bootstrap.Config: A"+want {
		t.Errorf("error %v", err)
	}
}
