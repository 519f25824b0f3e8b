package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/xdswatch/xdswatch/testutil"
)

// servers are the sources: a management server, one that is polled, and a file.
type servers struct {
	grpc    *testutil.ManagementServer
	rest    *testutil.RESTServer
	dir     string // of the file
	version int
	values
}

// values are what differs between versions of the resources.
type values struct {
	port                  uint32
	certificate, endpoint string
	connect               time.Duration
}

func start(dir string) (*servers, error) {
	grpc, err := testutil.NewManagementServer(testutil.ManagementConfig{})
	if err != nil {
		return nil, err
	}
	rest, err := testutil.NewRESTServer(testutil.RESTConfig{})
	if err != nil {
		grpc.Stop()
		return nil, err
	}
	s := &servers{grpc: grpc, rest: rest, dir: dir}
	err = s.change(func(v *values) { *v = values{443, "1.pem", "10.0.0.1", time.Second} })
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *servers) stop() {
	s.grpc.Stop()
	s.rest.Stop()
}

// secretYAML is a file that can be watched: a DiscoveryResponse.
const secretYAML = `
resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: certificate
  tls_certificate:
    certificate_chain: {filename: %s}
`

// change serves a new version everywhere. Watches hear only of what is not as it was.
func (s *servers) change(f func(*values)) error {
	f(&s.values)
	s.version++
	version := fmt.Sprint(s.version)
	listener, err := s.listener()
	if err != nil {
		return err
	}
	if err := s.grpc.Set(version, listener, s.assignment()); err != nil {
		return err
	}
	if err := s.rest.Set(version, s.cluster()); err != nil {
		return err
	}
	return testutil.PlaceFile(s.secrets(), fmt.Appendf(nil, secretYAML, s.certificate))
}

// secrets is the path of the file.
func (s *servers) secrets() string { return filepath.Join(s.dir, "secrets.yaml") }
