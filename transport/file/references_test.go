package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport/file"
)

func inFile(path string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
}

// keyPair is a Secret of a certificate and a key in files of a directory.
func keyPair(name, dir string) *tlsv3.Secret {
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: inFile(filepath.Join(dir, "tls.crt")), PrivateKey: inFile(filepath.Join(dir, "tls.key")),
	}}}
}

func roots(name, path string) *tlsv3.Secret {
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
		TrustedCa: inFile(path),
	}}}
}

func secrets(version string, list ...*tlsv3.Secret) *discoveryv3.DiscoveryResponse {
	r := &discoveryv3.DiscoveryResponse{VersionInfo: version}
	for _, s := range list {
		r.Resources = append(r.Resources, pack(s))
	}
	return r
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, testutil.PlaceFile(path, []byte(text)))
}

// Who watches a Secret hears of it again when a file that it refers to is another, though the
// Secret is what it was; of other Secrets nothing is told.
// spec: FILE-2
func TestReferences(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{".pb", ".yaml"} {
		t.Run(suffix, func(t *testing.T) {
			path, certs := at(t, "sds"+suffix), t.TempDir()
			ca := filepath.Join(certs, "ca.crt")
			for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
				put(t, filepath.Join(certs, name), name+" 1")
			}
			place(t, path, secrets("1", keyPair("pair", certs), roots("roots", ca)))
			p := start(t, path)
			p.watch(sds.Type, "pair")
			p.want("updated pair")
			p.watch(sds.Type, "roots")
			p.want("updated roots")

			put(t, filepath.Join(certs, "tls.crt"), "2")
			p.wantExactly("updated pair")
			put(t, filepath.Join(certs, "tls.key"), "2")
			p.wantExactly("updated pair")
			put(t, ca, "2")
			p.wantExactly("updated roots")
			must(t, os.WriteFile(ca, []byte("3, in place"), 0o644))
			p.wantExactly("updated roots")

			// The same content, or none, is no news; what comes after it is.
			put(t, ca, "3, in place")
			must(t, os.Remove(filepath.Join(certs, "tls.crt")))
			put(t, filepath.Join(certs, "tls.crt"), "2")
			place(t, path, secrets("2", keyPair("pair", certs), roots("roots", ca)))
			put(t, ca, "4")
			p.wantExactly("updated roots")

			// What is not referred to any more does not count, and what is new does.
			other := filepath.Join(t.TempDir(), "other.crt")
			put(t, other, "1")
			place(t, path, secrets("3", keyPair("pair", certs), roots("roots", other)))
			p.wantExactly("updated roots")
			put(t, ca, "5")
			put(t, other, "2")
			p.wantExactly("updated roots")
			p.wantQuiet()
		})
	}
}

// A file that is not there when the Secret is read is news when it comes.
// spec: FILE-2
func TestReferenceComesLate(t *testing.T) {
	t.Parallel()
	path, certs := at(t, "sds.pb"), filepath.Join(t.TempDir(), "certs")
	place(t, path, secrets("1", roots("roots", filepath.Join(certs, "ca.crt"))))
	p := start(t, path)
	p.watch(sds.Type, "roots")
	p.wantExactly("updated roots")
	must(t, os.Mkdir(certs, 0o755))
	put(t, filepath.Join(certs, "ca.crt"), "1")
	p.wantExactly("updated roots")
	p.watch(sds.Type, "more")
	p.wantExactly("does not exist more")
	must(t, os.Remove(filepath.Join(certs, "ca.crt")))
	must(t, os.Mkdir(filepath.Join(certs, "ca.crt"), 0o755)) // which cannot be read
	place(t, path, secrets("2", roots("roots", filepath.Join(certs, "ca.crt")), roots("more", filepath.Join(certs, "ca.crt"))))
	p.wantExactly("updated more")
	p.wantQuiet()
}

// A file that cannot be read is told of once, with the Secret that refers to it and the reason;
// the Secret stands.
// spec: FILE-2
func TestUnreadableReference(t *testing.T) {
	t.Parallel()
	path, ca := at(t, "sds.pb"), at(t, "ca.crt")
	place(t, path, secrets("1", roots("roots", ca)))
	r := open(t, path)
	r.ask(sds.Type.TypeURL(), "roots")
	r.want("1|roots")
	r.ask(sds.Type.TypeURL(), "roots")
	wantIs(t, r.wantTold(fmt.Sprintf("file %q: the Secret \"roots\" refers to the file %q: no such file", path, ca)), fs.ErrNotExist)

	put(t, ca, "1")
	r.want("1|roots")
	r.ask(sds.Type.TypeURL(), "roots")
	r.wantTold("")
	must(t, os.Remove(ca))
	must(t, os.Mkdir(ca, 0o755))
	for err := error(nil); !errors.Is(err, file.ErrNotRegular); { // it may have been away for a moment
		err = r.wantTold("the Secret \"roots\" refers to")
		if reference, ok := errors.AsType[*file.ReferenceError](err); !ok || reference.Path != ca {
			t.Fatalf("the error is %#v", err)
		}
	}
	must(t, os.Remove(ca))
	put(t, ca, "2")
	r.want("1|roots")
	r.ask(sds.Type.TypeURL(), "roots")
	for err := error(file.ErrNotRegular); err != nil; {
		select {
		case err = <-r.told: // that it is away, or nothing more
		case <-time.After(patience):
			t.Fatal("the end of the trouble is not told")
		}
	}
	r.wantNothingTold()
}

// The pair in a volume of Kubernetes changes by a link that is swapped, and is told once. A
// directory that the Secret has watched stands for places of which its paths say nothing.
// spec: FILE-2
func TestReferencesOfVolume(t *testing.T) {
	t.Parallel()
	pair := func(state string) map[string][]byte {
		return map[string][]byte{"tls.crt": []byte("crt " + state), "tls.key": []byte("key " + state)}
	}
	volume, err := testutil.NewConfigMap(t.TempDir(), pair("1"))
	must(t, err)
	far, elsewhere := filepath.Join(t.TempDir(), "far"), t.TempDir()
	put(t, far, "1")
	linked := at(t, "linked")
	must(t, os.Link(far, linked)) // its writes are notified elsewhere
	watched := roots("watched", linked)
	watched.GetValidationContext().WatchedDirectory = &corev3.WatchedDirectory{Path: elsewhere}
	path := at(t, "sds.yaml")
	place(t, path, secrets("1", keyPair("pair", filepath.Dir(volume.Path("tls.crt"))), watched))
	p := start(t, path)
	p.watch(sds.Type, "pair")
	p.wantExactly("updated pair")
	p.watch(sds.Type, "watched")
	p.wantExactly("updated watched")
	for i := range 3 {
		must(t, volume.Set(pair(fmt.Sprint(i))))
		p.wantExactly("updated pair")
	}
	must(t, os.WriteFile(far, []byte("2"), 0o644))
	put(t, filepath.Join(elsewhere, "done"), "")
	p.wantExactly("updated watched")
	p.wantQuiet()
}

// A pair that is replaced at once is told once, though one of its files was written later than the other, and
// is not left alone for long enough yet.
// spec: FILE-2
func TestPairIsToldOnce(t *testing.T) {
	t.Parallel()
	dir, ca, path := t.TempDir(), at(t, "ca.crt"), at(t, "sds.yaml")
	volume := filepath.Join(dir, "volume")
	lead := func(to string, certificate, key time.Time) {
		to = filepath.Join(dir, to)
		must(t, os.Mkdir(to, 0o755))
		for name, written := range map[string]time.Time{"tls.crt": certificate, "tls.key": key} {
			put(t, filepath.Join(to, name), to)
			must(t, os.Chtimes(filepath.Join(to, name), written, written))
		}
		must(t, os.Symlink(to, filepath.Join(dir, "next")))
		must(t, os.Rename(filepath.Join(dir, "next"), volume))
	}
	long := time.Now().Add(-time.Hour)
	lead("1", long, long)
	put(t, ca, "1")
	place(t, path, secrets("1", keyPair("pair", volume), roots("roots", ca)))
	p := start(t, path)
	p.watch(sds.Type, "pair")
	p.wantExactly("updated pair")
	p.watch(sds.Type, "roots")
	p.wantExactly("updated roots")
	for to, from := range map[string]int{"later key": 0, "later certificate": 1} {
		// A file of the future is waited for from the time that it is first seen.
		written := []time.Time{long, time.Now().Add(time.Hour), long}[from:]
		lead(to, written[0], written[1])
		p.wantExactly("updated pair")
		put(t, ca, to)
		p.wantExactly("updated roots")
	}
	p.wantQuiet()
}

// A single Secret in a Resource has references too, of which the wildcard hears.
// spec: FILE-2
func TestReferencesOfOne(t *testing.T) {
	t.Parallel()
	path, ca := at(t, "one.json"), at(t, "ca.crt")
	put(t, ca, "1")
	place(t, path, &discoveryv3.Resource{Name: "own", Version: "7", Resource: pack(roots("inner", ca))})
	p := start(t, path)
	p.watchAll(sds.Type, "*")
	p.want("updated own")
	p.want("synced *")
	put(t, ca, "2")
	p.wantExactly("updated own")
	states := p.client.Dump()
	if len(states) != 2 || states[1].Name != "own" || states[1].Status != client.Status("ACKED") {
		t.Errorf("dump %+v", states)
	}
}

// A guard sees a Secret whose file has changed as one that would change. Refused, it is told
// with the next response that is taken.
// spec: FILE-2 CFG-5
func TestReferencesGuarded(t *testing.T) {
	t.Parallel()
	path, ca := at(t, "sds.yaml"), at(t, "ca.crt")
	put(t, ca, "1")
	place(t, path, secrets("1", roots("roots", ca), roots("other", "/none")))
	judged := make(chan string, 100)
	var refuse atomic.Bool
	guard := func(p *client.Proposal) error {
		for _, c := range p.Changed {
			judged <- fmt.Sprintf("%s new=%v", c.Name, c.New)
		}
		if refuse.Load() {
			return errors.New("not now")
		}
		return nil
	}
	p := startServer(t, carrierConfig{Settle: settle, Recheck: recheck}, bootstrap.ManagementServer{
		URI: "file://" + path, ChannelCreds: bootstrap.Insecure(), Carrier: &sourceConfig{Path: path},
	}, guard)
	changed := func(want string) {
		t.Helper()
		if got := <-judged; got != want {
			t.Errorf("the guard saw %q changed, want %q", got, want)
		}
	}
	p.watch(sds.Type, "roots")
	p.want("updated roots")
	changed("roots new=true")

	refuse.Store(true)
	put(t, ca, "2")
	p.want("ambient error roots", "not now")
	changed("roots new=false")

	refuse.Store(false)
	place(t, path, secrets("2", roots("roots", ca)))
	p.wantExactly("updated roots")
	changed("roots new=false")
	place(t, path, secrets("3", roots("roots", ca)))
	put(t, ca, "3")
	p.wantExactly("updated roots")
	p.wantQuiet()
}
