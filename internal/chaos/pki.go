package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/xdswatch/xdswatch/testutil"
)

// serverName is what the server's certificates are for.
const serverName = "chaos.test"

// pki is the files of certificates and tokens: the client's below client, the server's
// below server.
type pki struct{ dir string }

// validity of a certificate.
type validity uint8

const (
	valid validity = iota
	expired
)

func newPKI() (*pki, error) {
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return nil, err
	}
	p := &pki{dir}
	return p, errors.Join(os.Mkdir(p.clientDir(), 0o700), os.Mkdir(p.serverDir(), 0o700))
}

func (p *pki) clientDir() string { return filepath.Join(p.dir, "client") }
func (p *pki) serverDir() string { return filepath.Join(p.dir, "server") }
func (p *pki) token() string     { return filepath.Join(p.dir, "token") }
func (p *pki) socket() string    { return filepath.Join(p.dir, "socket") }
func (p *pki) remove() error     { return os.RemoveAll(p.dir) }

// rotate replaces everything: a new authority, new certificates on both sides, a token.
func (p *pki) rotate(client, server validity) error {
	ca, err := testutil.NewCA()
	if err != nil {
		return err
	}
	return errors.Join(
		issue(ca, p.clientDir(), client),
		issue(ca, p.serverDir(), server),
		p.writeToken(tokenLife),
	)
}

func issue(ca *testutil.CA, dir string, v validity) error {
	o := testutil.CertOptions{
		CommonName: "chaos", DNS: []string{serverName, "localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if v == expired {
		o.NotBefore, o.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	}
	cert, err := ca.Issue(o)
	if err != nil {
		return err
	}
	_, err = cert.WriteFiles(dir)
	return err
}

// The client takes 30 seconds off a token's life and reads a new one when less than a
// minute is left: so each stream has this one read anew, and it outlives any fault but its
// own.
const tokenLife = 90 * time.Second

// writeToken replaces the token with one that has some time to live, or none.
func (p *pki) writeToken(life time.Duration) error {
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"none"}`)) + "." +
		part(fmt.Appendf(nil, `{"exp":%d}`, time.Now().Add(life).Unix())) + "." + part([]byte("signature"))
	if err := os.WriteFile(p.token()+".new", []byte(token), 0o600); err != nil {
		return err
	}
	return os.Rename(p.token()+".new", p.token())
}

// halve cuts files in half, in place, as a writer does that is not done yet.
func halve(files ...string) error {
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		if err := os.Truncate(f, info.Size()/2); err != nil {
			return err
		}
	}
	return nil
}
