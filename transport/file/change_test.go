package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport/file"
)

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// A file is read when it is first asked for, and again when another is moved there.
// spec: FILE-1
func TestMoves(t *testing.T) {
	for _, suffix := range []string{".pb", ".pb_text", ".json", ".yaml", ".conf"} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			path := at(t, "cds"+suffix)
			place(t, path, answer("1", "a", "b"))
			r := open(t, path)
			r.ask(clusterURL, "a")
			r.want("1|a|b")
			place(t, path, answer("2", "a"))
			r.want("2|a")
			place(t, path, answer("3"))
			r.want("3")
			r.wantNothingTold()
		})
	}
}

// What did not change is not told again, however often the file is moved or touched. Each
// response has a nonce of its own, so that the numbers of nonces show how many there were.
func TestSameContent(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.yaml")
	place(t, path, answer("1", "a"))
	r := open(t, path, func(_ *sourceConfig, c *carrierConfig) { c.Settle = 10 * settle })
	r.ask(clusterURL)
	r.want("1|a")
	data, err := os.ReadFile(path)
	must(t, err)
	for range 5 {
		must(t, testutil.PlaceFile(path, data))
		must(t, os.WriteFile(path, data, 0o644))
	}
	place(t, path, answer("2", "a"))
	r.want("2|a")
	if r.nonce != "2" {
		t.Errorf("nonce %q of the second response", r.nonce)
	}
}

// The same content that is moved into place anew is received anew where a resource has a time to live, and is not each time that
// the file is looked at.
//
// spec: FILE-1 TTL-1
func TestSameContentWithTTL(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".pb", ".json"} {
		path := at(t, "cds"+suffix)
		limited := &discoveryv3.Resource{Name: "a", Ttl: durationpb.New(time.Minute), Resource: pack(&clusterv3.Cluster{Name: "a"})}
		place(t, path, &discoveryv3.DiscoveryResponse{VersionInfo: "1", TypeUrl: clusterURL, Resources: []*anypb.Any{pack(limited)}})
		r := open(t, path)
		r.ask(clusterURL)
		r.want("1|a")
		data, err := os.ReadFile(path)
		must(t, err)
		must(t, testutil.PlaceFile(path, data))
		r.want("1|a")
		must(t, os.Chmod(path, 0o600)) // a notification, and no other content or time
		place(t, path, answer("2", "a"))
		r.want("2|a")
		must(t, testutil.PlaceFile(path, encode(t, path, answer("2", "a"))))
		place(t, path, answer("3", "a"))
		r.want("3|a")
		if r.nonce != "4" {
			t.Errorf("nonce %q of the fourth response", r.nonce)
		}
	}
}

// An unchanged resource is the same bytes again, so that nothing decodes it.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".pb", ".pb_text", ".json", ".yaml"} {
		path := at(t, "cds"+suffix)
		place(t, path, answer("1", "a", "b"))
		r := open(t, path)
		r.ask(clusterURL)
		before := r.response()
		next := answer("2", "a", "b", "c")
		place(t, path, next)
		after := r.response()
		for i, want := range before.Resources {
			if got := after.Resources[i]; string(got.Payload) != string(want.Payload) {
				t.Errorf("%s: %x became %x", suffix, want.Payload, got.Payload)
			}
		}
	}
}

// The volume of a ConfigMap changes by a link that is swapped.
// spec: FILE-1
func TestConfigMap(t *testing.T) {
	t.Parallel()
	m, err := testutil.NewConfigMap(t.TempDir(), map[string][]byte{
		"cds.yaml": encode(t, ".yaml", answer("1", "a")),
	})
	must(t, err)
	r := open(t, m.Path("cds.yaml"))
	r.ask(clusterURL)
	r.want("1|a")
	for _, version := range []string{"2", "3", "4"} {
		must(t, m.Set(map[string][]byte{"cds.yaml": encode(t, ".yaml", answer(version, "a"))}))
		r.want(version + "|a")
	}
	r.wantNothingTold()
}

// watched_directory is for places of which the path says nothing.
// spec: FILE-1
func TestWatchedDirectory(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "cds.json")
	place(t, path, answer("1", "a"))
	r := open(t, path, func(f *sourceConfig, c *carrierConfig) { f.WatchedDirectory = elsewhere })
	r.ask(clusterURL)
	r.want("1|a")
	// A hard link lets the content change without its directory.
	must(t, os.Link(path, filepath.Join(elsewhere, "same")))
	other := filepath.Join(t.TempDir(), "far")
	must(t, os.Link(path, other))
	must(t, os.WriteFile(other, encode(t, path, answer("2", "a")), 0o644))
	must(t, testutil.PlaceFile(filepath.Join(elsewhere, "done"), nil))
	r.want("2|a")
}

// A directory on the way of the path is itself a link.
func TestLinkedDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, v := range []string{"1", "2"} {
		must(t, os.Mkdir(filepath.Join(root, "v"+v), 0o755))
		place(t, filepath.Join(root, "v"+v, "cds.pb"), answer(v, "a"))
	}
	must(t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
	must(t, os.Symlink("../v1", filepath.Join(root, "etc", "xds")))
	r := open(t, filepath.Join(root, "etc", "xds", "cds.pb"))
	r.ask(clusterURL)
	r.want("1|a")
	must(t, os.Symlink("../v2", filepath.Join(root, "etc", "next")))
	must(t, os.Rename(filepath.Join(root, "etc", "next"), filepath.Join(root, "etc", "xds")))
	r.want("2|a")
	place(t, filepath.Join(root, "v2", "cds.pb"), answer("3", "a"))
	r.want("3|a")
}

// The directory of the file is moved away and another takes its place.
func TestReplacedDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "xds")
	path := filepath.Join(dir, "cds.pb")
	must(t, os.Mkdir(dir, 0o755))
	place(t, path, answer("1", "a"))
	r := open(t, path)
	r.ask(clusterURL)
	r.want("1|a")
	for _, version := range []string{"2", "3"} {
		must(t, os.Mkdir(filepath.Join(root, "new"), 0o755))
		place(t, filepath.Join(root, "new", "cds.pb"), answer(version, "a"))
		must(t, os.Rename(dir, filepath.Join(root, "old")))
		must(t, os.Rename(filepath.Join(root, "new"), dir))
		must(t, os.RemoveAll(filepath.Join(root, "old")))
		for r.next() != version+"|a" { // it may have been seen that there was none
		}
	}
	place(t, path, answer("4", "a"))
	r.want("4|a")
}

// A file that is written in place is not read while it is half done: not even where the
// half is good, or empty.
// spec: FILE-4
func TestWrittenInPlace(t *testing.T) {
	if testing.Short() {
		t.Skip("long: waits for a file to be left alone")
	}
	for _, suffix := range []string{".pb", ".yaml", ".json", ".pb_text"} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			path := at(t, "cds"+suffix)
			place(t, path, answer("1", "a"))
			// A busy machine may stop between two writes for long.
			r := open(t, path, func(_ *sourceConfig, c *carrierConfig) { c.Settle = 1500 * time.Millisecond })
			r.ask(clusterURL)
			r.want("1|a")
			data := encode(t, path, answer("2", "a", "b", "c"))
			for _, n := range []int{0, 1, len(data) / 2, len(data) - 1} {
				finish, err := testutil.BeginFile(path, data, n)
				must(t, err)
				must(t, finish())
			}
			r.want("2|a|b|c")
			r.wantNothingTold()
		})
	}
}

// One that stays half done is bad, and then whole.
// spec: FILE-4
func TestHalfDone(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.json")
	place(t, path, answer("1", "a"))
	r := open(t, path)
	r.ask(clusterURL, "a")
	r.want("1|a")
	data := encode(t, path, answer("2", "a"))
	finish, err := testutil.BeginFile(path, data, len(data)/2)
	must(t, err)
	fault := fmt.Sprintf("JSON, line 1:%d: unexpected end of JSON input", len(data)/2)
	r.wantTold(fault)
	r.want(`1|error 3 of a: file "PATH": ` + fault)
	must(t, finish())
	r.want("2|a")
	r.wantTold("")
}

// Nothing is deleted by a file that is emptied before it is written.
func TestEmptied(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".pb", ".yaml", ".json", ".pb_text", ""} {
		path := at(t, "cds"+suffix)
		place(t, path, answer("1", "a"))
		r := open(t, path)
		r.ask(clusterURL)
		r.want("1|a")
		finish, err := testutil.BeginFile(path, encode(t, path, answer("2", "b")), 0)
		must(t, err)
		wantIs(t, r.wantTold("the file is empty"), file.ErrEmpty)
		r.wantError()
		must(t, finish())
		r.want("2|b")
		r.wantTold("")
	}
}

// Without notifications the file is looked at now and then.
func TestRecheck(t *testing.T) {
	t.Parallel()
	far := filepath.Join(t.TempDir(), "far")
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a"))
	must(t, os.Link(path, far)) // its writes are notified elsewhere
	r := open(t, path, func(_ *sourceConfig, c *carrierConfig) { c.Recheck = settle })
	r.ask(clusterURL)
	r.want("1|a")
	must(t, os.WriteFile(far, encode(t, path, answer("2", "a")), 0o644))
	r.want("2|a")
}

// A file that is deleted leaves what it held, and what is put back ends the trouble, though
// it is the same.
// spec: FILE-5
func TestDeletedAndRestored(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a"))
	r := open(t, path)
	r.ask(clusterURL, "a")
	r.want("1|a")
	must(t, os.Remove(path))
	wantIs(t, r.wantTold("no such file"), os.ErrNotExist)
	r.want(`1|error 14 of a: file "PATH": no such file or directory`)
	place(t, path, answer("1", "a"))
	r.want("1|a")
	r.wantTold("")
	must(t, os.Rename(path, path+".old"))
	r.wantTold("no such file")
	r.want(`1|error 14 of a: file "PATH": no such file or directory`)
	place(t, path, answer("2", "a"))
	r.want("2|a")
	r.wantTold("")
}

// What more is asked for is answered with the file as it is; an answer, or less, is not.
func TestInterest(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a", "b"))
	r := open(t, path)
	r.ask(clusterURL, "a")
	r.want("1|a|b")
	r.ask(clusterURL, "a")
	r.ask(clusterURL, "a", "b")
	r.want("1|a|b")
	r.ask(clusterURL, "b")
	r.ask(clusterURL)
	place(t, path, answer("2", "a", "b")) // nobody is told
	r.ask(clusterURL, "*")
	r.response()
	if r.nonce != "3" {
		t.Errorf("nonce %q of the third response", r.nonce)
	}
}

// A NACK goes nowhere but to the operator, once, and ends with what is good.
// spec: FILE-4
func TestRefused(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a"))
	r := open(t, path)
	r.ask(clusterURL, "a")
	r.want("1|a")
	nack := &wire.Status{Code: 3, Message: "a is bad"}
	r.send(clusterURL, nack, "a")
	err := r.wantTold("a is bad")
	if got, want := err.Error(), `file "`+path+`": `+clusterURL+": resources were refused: a is bad"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	r.send(clusterURL, nack, "a")
	r.ask(clusterURL, "a", "b") // no verdict
	r.want("1|a")
	r.send(clusterURL, nack, "a", "b")
	place(t, path, answer("2", "a"))
	r.want("2|a")
	r.wantNothingTold()
	r.ask(clusterURL, "a", "b")
	r.wantTold("")
}
