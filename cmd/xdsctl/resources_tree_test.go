package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
)

// A directory is read through links as mounted ConfigMaps and releases have them, each directory once;
// what is hidden, and what is no regular file, is left out.
func TestReadLinks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"release/..1/nested", "release/own"} {
		if err := os.MkdirAll(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"..1/a", "..1/nested/b", "own/c"} {
		text := `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "` + filepath.Base(name) + `"}`
		if err := os.WriteFile(at("release/"+name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"current": "release", "release/..data": "..1", "release/a.json": "..data/a.json", "release/nested": "..data/nested",
		"release/own/loop": "..", "release/same": "own",
	} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(at("release/fifo.json"), 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{"release", "current", "current/"} {
		rs, err := resources.Read(dir + "/" + path)
		var names []string
		for _, r := range rs {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != "a b c" {
			t.Errorf("%s: read %s, %v", path, got, err)
		}
	}
}
