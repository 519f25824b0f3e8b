package tlscreds

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/regular"
)

// readWait is how long a handshake waits for files that are read, before it uses what was read
// earlier: whoever has the files may hang.
const readWait = 5 * time.Second

// material keeps the certificates that were read last. Safe for concurrent use.
type material struct {
	spec bootstrap.TLS

	mu      sync.Mutex
	pair    item[*tls.Certificate]
	roots   item[*x509.CertPool]
	reading chan struct{} // closed when the reading that is under way is over; nil if none is

	// Owned by the reading that is under way: a bundle takes milliseconds to parse, and seldom changes.
	sum    [sha256.Size]byte // of the text of parsed
	parsed *x509.CertPool
}

// item is something that is read from files and kept, guarded by the material's mutex but for
// load.
type item[T any] struct {
	value T
	have  bool      // value was read once
	read  time.Time // when value was read
	err   error     // of the last reading
	load  func() (T, error)
}

func newMaterial(c bootstrap.TLS) *material {
	m := &material{spec: c}
	if hasPair(c) {
		m.pair.load = m.loadPair
	}
	if hasRoots(c) {
		m.roots.load = m.loadRoots
	}
	return m
}

func hasPair(c bootstrap.TLS) bool {
	return c.CertificateFile != "" || c.PrivateKeyFile != "" || len(c.Certificate) > 0 || len(c.PrivateKey) > 0
}

func hasRoots(c bootstrap.TLS) bool {
	return c.CACertificateFile != "" || len(c.CACertificate) > 0
}

// config reads what is too old and returns the configuration of one handshake. An error
// means that something was never read well, or that ctx ended; stale, that an older state is
// used and why.
func (m *material) config(ctx context.Context) (config *tls.Config, stale, err error) {
	slow := m.await(ctx, m.refresh())
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("reading certificates: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if stale = slow; slow == nil {
		stale = errors.Join(m.pair.err, m.roots.err)
	}
	if !m.pair.usable() || !m.roots.usable() {
		return nil, nil, stale
	}
	return clientConfig(m.spec, m.pair.value, m.roots.value), stale, nil
}

// HasFiles says whether there is something for Look to read.
func (m *material) HasFiles() bool {
	return m.spec.CACertificateFile+m.spec.CertificateFile+m.spec.PrivateKeyFile != ""
}

// Look reads the files again, unless what was read is newer than the refresh interval, and says of each
// that was good once why it is not now; nil if it is. What was good stays in use.
func (m *material) Look(ctx context.Context) map[string]error {
	slow := m.await(ctx, m.refresh())
	m.mu.Lock()
	defer m.mu.Unlock()
	faults := map[string]error{}
	if path := cmp.Or(m.spec.CertificateFile, m.spec.PrivateKeyFile); path != "" && m.pair.have {
		faults[path] = cmp.Or(slow, m.pair.err)
	}
	if path := m.spec.CACertificateFile; path != "" && m.roots.have {
		faults[path] = cmp.Or(faults[path], slow, m.roots.err)
	}
	return faults
}

// await waits for a reading, unless it takes too long.
func (m *material) await(ctx context.Context, reading <-chan struct{}) error {
	if reading == nil {
		return nil
	}
	timer := time.NewTimer(readWait)
	defer timer.Stop()
	select {
	case <-reading:
	case <-ctx.Done():
	case <-timer.C:
		return fmt.Errorf("the files have not been read within %v", readWait)
	}
	return nil
}

// refresh begins to read what is too old, in a goroutine that lives no longer than the files
// take, and of which there is one at a time. It returns what ends with the reading; nil if
// nothing is too old.
func (m *material) refresh() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	pair, roots := m.pair.due(m.spec.RefreshInterval), m.roots.due(m.spec.RefreshInterval)
	if m.reading == nil && (pair || roots) {
		m.reading = make(chan struct{})
		go m.readFiles(pair, roots)
	}
	return m.reading
}

func (m *material) readFiles(pair, roots bool) {
	var keep []func()
	if pair {
		keep = append(keep, m.pair.reload())
	}
	if roots {
		keep = append(keep, m.roots.reload())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range keep {
		f()
	}
	close(m.reading)
	m.reading = nil
}

func (i *item[T]) due(interval time.Duration) bool {
	return i.load != nil && !(i.have && time.Since(i.read) < interval)
}

// reload reads the value, and returns what keeps it, or keeps the old one on an error.
func (i *item[T]) reload() (keep func()) {
	v, err := i.load()
	return func() {
		if i.err = err; err == nil {
			i.value, i.have, i.read = v, true, time.Now()
		}
	}
}

// expire makes the next handshake read everything: a peer that refused what was cached
// may have been given other certificates meanwhile.
func (m *material) expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pair.read, m.roots.read = time.Time{}, time.Time{}
}

// refused is the error of a handshake that failed, with why it was tried with an older
// state, if it was.
func (m *material) refused(err, stale error) error {
	m.expire()
	err = brief(err)
	if stale == nil {
		return err
	}
	return fmt.Errorf("%w (with certificates read earlier, since now: %w)", err, stale)
}

func (i *item[T]) usable() bool { return i.load == nil || i.have }

// loadPair refuses a certificate and key that do not belong together, as they are seen
// when only one of them was replaced yet.
func (m *material) loadPair() (*tls.Certificate, error) {
	cert, err := text(m.spec.Certificate, m.spec.CertificateFile, "certificate")
	if err != nil {
		return nil, err
	}
	key, err := text(m.spec.PrivateKey, m.spec.PrivateKeyFile, "private key")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with private key %s: %w",
			origin(m.spec.CertificateFile), origin(m.spec.PrivateKeyFile), err)
	}
	return &pair, nil
}

func (m *material) loadRoots() (*x509.CertPool, error) {
	data, err := text(m.spec.CACertificate, m.spec.CACertificateFile, "ca certificate")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	if m.parsed != nil && sum == m.sum {
		return m.parsed, nil
	}
	pool, err := parseRoots(data)
	if err != nil {
		return nil, fmt.Errorf("ca certificate %s: %w", origin(m.spec.CACertificateFile), err)
	}
	m.sum, m.parsed = sum, pool
	return pool, nil
}

// parseRoots passes over certificates that Go does not understand, as the system's
// bundles hold some, but not over a file that ends in the middle of one.
func parseRoots(data []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), 0
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		data = rest
		if block.Type != "CERTIFICATE" {
			continue
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			pool.AddCert(cert)
			found++
		}
	}
	if bytes.Contains(data, []byte("-----BEGIN ")) {
		return nil, errors.New("ends within a PEM block")
	}
	if found == 0 {
		return nil, errors.New("holds no certificate in PEM form")
	}
	return pool, nil
}

// text is the inline text if there is one, else the content of the file.
func text(inline []byte, file, what string) ([]byte, error) {
	if len(inline) > 0 {
		return inline, nil
	}
	if file == "" {
		return nil, fmt.Errorf("%s is not configured", what)
	}
	data, err := regular.Read(file, regular.MaxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, regular.Named(file, err))
	}
	return data, nil
}

func origin(file string) string {
	if file == "" {
		return "given inline"
	}
	return file
}
