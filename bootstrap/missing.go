package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/xdswatch/xdswatch/internal/regular"
	"github.com/xdswatch/xdswatch/xdstp"
)

// missing tells which of the files that a Config names cannot be opened now, each once. They are
// read later, and again and again, so it is no fault.
type missing struct {
	source string
	seen   map[string]bool
	out    []string
}

// missingFiles are the notices about the files of all servers of a Config, and of locators.
func (c *Config) missingFiles(source string) []string {
	m := &missing{source: source, seen: map[string]bool{}}
	m.servers(c.Servers)
	for _, name := range slices.Sorted(maps.Keys(c.Authorities)) {
		m.servers(c.Authorities[name].Servers)
	}
	for i := range c.Sources {
		m.servers(c.Sources[i].Servers)
	}
	if c.DefaultSource != nil {
		m.servers(c.DefaultSource.Servers)
	}
	for _, s := range c.Startup {
		if s.Source != nil {
			m.servers(s.Source.Servers)
		}
		if l, err := xdstp.ParseLocator(s.Collection); err == nil && l.Scheme == xdstp.SchemeFile {
			m.file("file", "/"+l.Name.ID)
		}
	}
	return m.out
}

func (m *missing) servers(servers []ManagementServer) {
	for _, s := range servers {
		m.creds(s.ChannelCreds)
		if r := s.REST(); r != nil {
			for _, e := range r.Endpoints {
				m.creds(e.ChannelCreds)
			}
		}
		if f := s.File(); f != nil {
			m.file("file", f.Path)
		}
		for _, cc := range s.CallCreds {
			m.file("token file", cc.TokenFile)
		}
	}
}

func (m *missing) creds(cc ChannelCreds) {
	if t := cc.TLS; t != nil {
		m.file("CA certificate file", t.CACertificateFile)
		m.file("certificate file", t.CertificateFile)
		m.file("private key file", t.PrivateKeyFile)
	}
}

func (m *missing) file(what, path string) {
	if path == "" || m.seen[path] {
		return
	}
	m.seen[path] = true
	f, _, err := regular.Open(path)
	if err == nil {
		f.Close()
		return
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	m.out = append(m.out, fmt.Sprintf("%s: the %s %q cannot be opened now: %v", m.source, what, path, err))
}
