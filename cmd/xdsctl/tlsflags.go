package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// tlsFlags say how a connection is secured.
type tlsFlags struct {
	tls                           bool
	caCert, cert, key, serverName string
}

var tlsFlagNames = []string{"tls", "ca-cert", "cert", "key", "server-name"}

// register adds the flags; to and of say of whom they are in the texts of --tls and --server-name.
func (f *tlsFlags) register(set *pflag.FlagSet, to, of string) {
	set.BoolVar(&f.tls, "tls", false, "TLS"+to+"; the four flags below imply it")
	set.StringVar(&f.caCert, "ca-cert", "", "PEM `FILE` of the authorities that are trusted (default the system's)")
	set.StringVar(&f.cert, "cert", "", "PEM `FILE` of the client's certificate")
	set.StringVar(&f.key, "key", "", "PEM `FILE` of its private key")
	set.StringVar(&f.serverName, "server-name", "", "`NAME` in the "+of)
}

// config is the TLS that the flags ask for; nil for none. It is an error if a file cannot be used.
func (f *tlsFlags) config() (*tls.Config, error) {
	if !f.tls && f.caCert == "" && f.cert == "" && f.key == "" && f.serverName == "" {
		return nil, nil
	}
	c := &tls.Config{ServerName: f.serverName}
	var errs []error
	if (f.cert == "") != (f.key == "") {
		errs = append(errs, errors.New("--cert and --key belong together"))
	}
	for _, it := range []struct{ flag, path string }{{"ca-cert", f.caCert}, {"cert", f.cert}, {"key", f.key}} {
		if it.path == "" {
			continue
		}
		if err := readable(it.path); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", it.flag, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if f.caCert != "" {
		text, err := os.ReadFile(f.caCert)
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca-cert: %s: there is no certificate in it", f.caCert)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--cert, --key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// readable says whether a file can be read again and again.
func readable(path string) error {
	switch info, err := os.Stat(path); {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return file.Close()
}
