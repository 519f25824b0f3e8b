package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/xdswatch/xdswatch/testutil"
)

// nameFaults are those of finding the server.
func nameFaults() []fault {
	dns := func(v variant) bool { return v.via == viaDNS }
	unix := func(v variant) bool { return v.via == viaUnix }
	return []fault{
		{name: "dns-gone", needs: dns, do: loseName(nameGone)},
		{name: "dns-fails", needs: dns, do: loseName(failing)},
		{name: "dns-silent", needs: dns, do: loseName(silent)},
		{name: "socket-gone", needs: unix, do: loseSocket((*relay).shut)},
		{name: "socket-dead", needs: unix, do: loseSocket((*relay).abandon)},
	}
}

func loseName(m mood) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		return w.between(ctx, 3*aWhile,
			func() error {
				w.names.be(m)
				w.cut()
				return nil
			},
			func() error { w.names.be(answering); return nil },
		)
	}
}

func loseSocket(lose func(*relay)) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		return w.between(ctx, aWhile,
			func() error {
				lose(w.relay)
				w.cut()
				return nil
			},
			func() error { return w.relay.open() },
		)
	}
}

// secretFaults are those of certificates and tokens.
func secretFaults() []fault {
	tls := func(v variant) bool { return v.tls }
	return []fault{
		{name: "certs-rotated", needs: tls, do: certsRotated},
		{name: "client-cert-expired", needs: tls, do: certsExpired(expired, valid)},
		{name: "server-cert-expired", needs: tls, do: certsExpired(valid, expired)},
		{name: "certs-half-written", needs: tls, do: certsDamaged(func(dir string) error { return halve(certFiles(dir)...) })},
		{name: "certs-missing", needs: tls, do: certsDamaged(func(dir string) error { return removeAll(certFiles(dir)) })},
		{name: "certs-mismatched", needs: tls, do: certsDamaged(mismatch)},
		{name: "token-expired", needs: tls, do: tokenBroken(func(p *pki) error { return p.writeToken(-time.Minute) })},
		{name: "token-half-written", needs: tls, do: tokenBroken(func(p *pki) error { return halve(p.token()) })},
		{name: "token-missing", needs: tls, do: tokenBroken(func(p *pki) error { return os.Remove(p.token()) })},
	}
}

// certsRotated replaces the authority and all certificates, and cuts.
func certsRotated(ctx context.Context, w *world) error {
	for range 3 {
		if err := w.files.rotate(valid, valid); err != nil {
			return err
		}
		w.cut()
		if err := w.live(ctx, aWhile); err != nil {
			return err
		}
	}
	return nil
}

func certsExpired(client, server validity) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		return w.between(ctx, 3*aWhile,
			func() error {
				err := w.files.rotate(client, server)
				w.cut()
				return err
			},
			func() error { return w.files.rotate(valid, valid) },
		)
	}
}

// certsDamaged breaks the client's files, and cuts: what was read before serves on. Then
// the server's own are broken too.
func certsDamaged(damage func(dir string) error) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if err := w.connected(ctx); err != nil {
			return err
		}
		if err := damage(w.files.clientDir()); err != nil {
			return err
		}
		w.cut()
		if err := w.live(ctx, aWhile); err != nil {
			return err
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		return w.between(ctx, aWhile,
			func() error {
				err := damage(w.files.serverDir())
				w.cut()
				return err
			},
			func() error { return w.files.rotate(valid, valid) },
		)
	}
}

// connected makes sure that the client has a connection, and so has read its files: a
// collection is only complete when the server has answered.
func (w *world) connected(ctx context.Context) error {
	for k := range w.model.kinds {
		if w.program.collected(k) {
			if err := w.program.watchAll(k, "*"); err != nil {
				return err
			}
		}
	}
	return w.await(ctx, false)
}

func certFiles(dir string) []string {
	return []string{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
}

func removeAll(files []string) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, os.Remove(f))
	}
	return errors.Join(errs...)
}

// mismatch leaves a key that is not of its certificate.
func mismatch(dir string) error {
	ca, err := testutil.NewCA()
	if err != nil {
		return err
	}
	cert, err := ca.Issue(testutil.CertOptions{})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "key.pem"), cert.KeyPEM, 0o600)
}

// tokenBroken takes the client's token away once the one that it has in its memory is
// used up.
func tokenBroken(spoil func(*pki) error) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		// The client has this one read with its next stream, and keeps it for a second.
		if err := w.files.writeToken(31 * time.Second); err != nil {
			return err
		}
		w.cut()
		if err := w.settle(ctx); err != nil {
			return err
		}
		return w.between(ctx, aWhile,
			func() error {
				if err := spoil(w.files); err != nil {
					return err
				}
				if err := pause(ctx, 1500*time.Millisecond); err != nil {
					return err
				}
				w.cut()
				return nil
			},
			func() error { return w.files.writeToken(tokenLife) },
		)
	}
}
