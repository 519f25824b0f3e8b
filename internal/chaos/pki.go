package chaos

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/testutil"
)

// serverName is what the server's certificates are for.
const serverName = "chaos.test"

// pki is the files of certificates and tokens, with directories of the client's and of the server's.
type pki struct {
	t                         testing.TB
	dir, clientDir, serverDir string
}

func newPKI(t testing.TB) *pki {
	p := &pki{t, t.TempDir(), t.TempDir(), t.TempDir()}
	p.rotate(false, false)
	return p
}

func (p *pki) token() string  { return filepath.Join(p.dir, "token") }
func (p *pki) socket() string { return filepath.Join(p.dir, "socket") }

// rotate replaces everything: a new authority, new certificates on both sides that may have expired
// already, a token.
func (p *pki) rotate(clientExpired, serverExpired bool) {
	ca := p.authority()
	p.issue(ca, p.clientDir, clientExpired)
	p.issue(ca, p.serverDir, serverExpired)
	p.writeToken(tokenLife)
}

func (p *pki) authority() *testutil.CA {
	ca, err := testutil.NewCA()
	must(p.t, err)
	return ca
}

func (p *pki) issue(ca *testutil.CA, dir string, expired bool) {
	o := testutil.CertOptions{
		CommonName: "chaos", DNS: []string{serverName, "localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if expired {
		o.NotBefore, o.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	}
	cert, err := ca.Issue(o)
	must(p.t, err)
	_, err = cert.WriteFiles(dir)
	must(p.t, err)
}

// The client takes 30 seconds off a token's life and reads a new one when less than a
// minute is left: so each stream has this one read anew, and it outlives any fault but its
// own.
const tokenLife = 90 * time.Second

// writeToken replaces the token with one that has some time to live, or none.
func (p *pki) writeToken(life time.Duration) {
	claims := fmt.Appendf(nil, `{"exp":%d}`, time.Now().Add(life).Unix())
	token := "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".signature"
	must(p.t, testutil.PlaceFile(p.token(), []byte(token)))
}

// expire replaces the token with one that has expired.
func (p *pki) expire(string) { p.writeToken(-time.Minute) }

// halve cuts a file in half, in place, as a writer does that is not done yet.
func (p *pki) halve(file string) {
	info, err := os.Stat(file)
	must(p.t, err)
	must(p.t, os.Truncate(file, info.Size()/2))
}

func (p *pki) remove(file string) { must(p.t, os.Remove(file)) }

// mismatch makes the file of a key that of another.
func (p *pki) mismatch(file string) {
	cert, err := p.authority().Issue(testutil.CertOptions{})
	must(p.t, err)
	must(p.t, os.WriteFile(file, cert.KeyPEM, 0o600))
}
