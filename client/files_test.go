package client_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// Of two servers with one URI each has its own files: that one's connection is closed says nothing of the
// other's.
func TestCredentialFilesOfOneURI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	ca, err := testutil.NewCA()
	must(t, err)
	must(t, os.WriteFile(path, ca.PEM, 0o600))
	inBubble(t, func(t *testing.T, r *rig) {
		files := func() []transport.FileReport {
			synctest.Wait()
			return r.c.Gauges().CredentialFiles
		}
		r.watch("a")
		other, _ := r.watch("xdstp://other/envoy.config.cluster.v3.Cluster/a")
		time.Sleep(time.Minute)
		must(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
		time.Sleep(7 * time.Second)
		if got := files(); len(got) != 1 {
			t.Errorf("bad files are %v, want one of both servers", got)
		}
		other.Stop()
		time.Sleep(time.Minute)
		if got := files(); len(got) != 1 || got[0].Path != path {
			t.Errorf("bad files are %v when one of the connections is closed", got)
		}
	}, func(c *client.Config) {
		s := &c.Bootstrap.Servers[0]
		s.URI = "passthrough:///xds.test"
		s.ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{CACertificateFile: path}}
		delta := *s
		delta.Delta = true
		c.Bootstrap.Authorities = map[string]bootstrap.Authority{"other": {Servers: []bootstrap.ManagementServer{delta}}}
		c.GRPC.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("nobody there")
		})}
	})
}

// A file of the credentials that goes bad is in the log once and in the gauges, until it is good
// again or the connection is closed. A hook of the program's hears of it too, and may panic.
//
// spec: H-10
func TestCredentialFileGoesBad(t *testing.T) {
	var log *logBuffer
	path := filepath.Join(t.TempDir(), "ca.pem")
	ca, err := testutil.NewCA()
	must(t, err)
	good := func() { must(t, errors.Join(os.RemoveAll(path), os.WriteFile(path, ca.PEM, 0o600))) }
	bad := func() { must(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700))) }
	good()
	heard := 0
	inBubble(t, func(t *testing.T, r *rig) {
		files := func() []transport.FileReport {
			synctest.Wait()
			return r.c.Gauges().CredentialFiles
		}
		w, _ := r.watch("a")
		time.Sleep(time.Minute)
		bad()
		time.Sleep(7 * time.Second)
		if got := files(); len(got) != 1 || got[0].Server != "passthrough:///xds.test" || got[0].Path != path || got[0].Err == nil {
			t.Errorf("bad files are %v", got)
		}
		time.Sleep(time.Minute)
		if ls := log.lines("level=WARN", "a file of the credentials has gone bad", "path=", path, "not a regular file"); len(ls) != 1 {
			t.Errorf("%d lines:\n%s", len(ls), log.text())
		}
		good()
		time.Sleep(6 * time.Second)
		if got := files(); len(got) != 0 {
			t.Errorf("bad files are %v after the recovery", got)
		}
		log.holds(t, "a file of the credentials is good again")
		bad()
		time.Sleep(7 * time.Second)
		w.Stop()
		time.Sleep(time.Minute)
		if got := files(); len(got) != 0 {
			t.Errorf("bad files are %v without a connection", got)
		}
		if heard != 4 {
			t.Errorf("the program heard %d reports, want 4", heard)
		}
		log.holds(t, "CredentialFiles panicked")
	}, logged(&log), func(c *client.Config) {
		c.Bootstrap.Servers[0].URI = "passthrough:///xds.test"
		c.Bootstrap.Servers[0].ChannelCreds = bootstrap.ChannelCreds{Type: "tls", TLS: &bootstrap.TLS{CACertificateFile: path}}
		c.GRPC.CredentialFiles = func(transport.FileReport) {
			heard++
			panic("on purpose")
		}
		c.GRPC.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("nobody there")
		})}
	})
}
