package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/resource/cds"
)

// odd is a name with what a terminal obeys, and what turns the direction of text.
const odd = "a\u009b31m\u202e\u007f\x1b[31m\tb"

// harmful is what of a text should not reach a terminal.
func harmful(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return -1
		}
		return r
	}, text)
}

// No output has what a terminal obeys, and each is good for what it is made for.
//
// spec: H-12
func TestHarmlessOutput(t *testing.T) {
	t.Parallel()
	m := managed(t, cluster(odd))
	process := serveProcess(t, saying(&statusv3.ClientStatusResponse{Config: []*statusv3.ClientConfig{{GenericXdsConfigs: []*genericConfig{
		{TypeUrl: cds.Type.TypeURL(), Name: odd, XdsConfig: packed(cluster(odd)), ClientStatus: adminv3.ClientResourceStatus_ACKED, LastUpdated: daysAgo()},
	}}}}))
	for _, args := range []string{
		"get -o json --server " + m.Addr() + " cds", "get -o yaml --server " + m.Addr() + " cds", "get -o name --server " + m.Addr() + " cds",
		"status " + process, "csds " + process, "csds -o json " + process, "dump " + process,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			status, out, errs := runOnce(t, strings.Fields(args)...)
			if status != 0 || !strings.Contains(out, "31m") || harmful(out) != "" {
				t.Errorf("status %d, %s\n%q", status, errs, out)
			}
			if fields := strings.Fields(args); strings.Contains(args, "name") || fields[0] == "status" || strings.Contains(args, "csds -o json") {
				return
			}
			// It is read back as what it was.
			path := file(t, "state.yaml", out)
			if status, out, errs := runOnce(t, "diff", path, "server:"+m.Addr()); status != 0 {
				t.Errorf("read back: status %d, %s%s", status, out, errs)
			}
		})
	}
	t.Run("record", func(t *testing.T) {
		t.Parallel()
		p := startCommand(t, strings.NewReplacer(), "record", "--to", "-", "--server", m.Addr(), "cds")
		for line := ""; !strings.Contains(line, "31m"); {
			if line = p.line(); harmful(line) != "" {
				t.Errorf("%q", line)
			}
		}
		p.stop()
		p.ends(0)
	})
	for _, args := range [][]string{
		{"validate", odd}, {"replay", odd}, {"bootstrap", odd}, {"dump", odd}, {"get", "--server", m.Addr(), "cds:x" + odd, "--resource-timeout", "50ms"},
	} {
		status, out, errs := runOnce(t, args...)
		if status == 0 || errs == "" || harmful(out+errs) != "" {
			t.Errorf("%q: status %d, %q", args, status, out+errs)
		}
	}
}

// A file's name, and a type that xdsctl does not know, are what somebody else wrote: each finding and each difference
// is one line all the same.
//
// spec: H-12
func TestHarmlessFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, odd+"\n.json")
	text, err := json.Marshal(map[string]string{"@type": "type.googleapis.com/" + odd + "\nx", "name": "n"})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", dir}, {"validate", path}, {"diff", dir, t.TempDir()}} {
		_, out, errs := runOnce(t, args...)
		if strings.Count(out, "\n") != 1 || errs != "" || harmful(out) != "" {
			t.Errorf("%q: %q, %q", args, out, errs)
		}
	}
}

// So is each file that cannot be read.
//
// spec: H-12
func TestHarmlessNames(t *testing.T) {
	t.Parallel()
	bad, gone := t.TempDir(), t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(bad, odd+"\n.yaml"), []byte("x"), 0o600),
		os.Symlink("gone", filepath.Join(gone, odd+"\n.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{bad, gone} {
		for _, args := range [][]string{{"diff", dir, t.TempDir()}, {"replay", dir}} {
			status, out, errs := runOnce(t, args...)
			if status != 1 || out != "" || strings.Count(errs, "\n") != 1 || harmful(errs) != "" {
				t.Errorf("%q: status %d, %q, %q", args, status, out, errs)
			}
		}
	}
}

// What a server says is one line, whatever is in it, and no error of its own.
//
// spec: H-12
func TestHarmlessServer(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, command := range []string{"get cds --server ADDR", "graph cds:a --server ADDR", "diff server:ADDR " + empty} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			m := server(t)
			go func() {
				for {
					st, err := m.Accept(t.Context())
					if err != nil {
						return
					}
					st.End(status.Error(codes.PermissionDenied, "go away\nxdsctl: "+odd))
				}
			}()
			args := strings.Fields(strings.ReplaceAll(command, "ADDR", m.Target()))
			got, out, errs := runOnce(t, append(args, "--resource-timeout", "2s", "--log-level", "error")...)
			if got != 1 || strings.Count(errs, "\n") != strings.Count(errs, "go away") || !strings.Contains(errs, `go away\nxdsctl: a`) || harmful(out+errs) != "" {
				t.Errorf("status %d, %s%q", got, out, errs)
			}
		})
	}
}

// JSON with characters that YAML does not allow is JSON all the same.
func TestJSONIsNotYAML(t *testing.T) {
	t.Parallel()
	m := managed(t, cluster(odd))
	path := file(t, "c.json", `{"@type": "`+clusters+`", "name": "a`+"\u009b31m\u202e\u007f"+`\u001b[31m\tb"}`)
	if status, out, errs := runOnce(t, "diff", path, "server:"+m.Addr()); status != 0 {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}
