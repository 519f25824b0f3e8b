package transport_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"google.golang.org/grpc/codes"

	"github.com/xdswatch/xdswatch/internal/nameserver"
	"github.com/xdswatch/xdswatch/transport"
)

// While the name of a server is not known, attempts fail, in their time; once it is, they succeed.
func TestNameIsLost(t *testing.T) {
	_, port, err := net.SplitHostPort(serveTCP(t, echo).addr)
	if err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]dnsmessage.RCode{
		"gone": dnsmessage.RCodeNameError, "failing": dnsmessage.RCodeServerFailure, "silent": nameserver.Silent,
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && code == nameserver.Silent {
				t.Skip("long: five seconds")
			}
			t.Parallel()
			names := nameserver.Start(t)
			uri := "dns://" + names.Addr + "/xds.test:" + port
			wantEcho(t, open(t, build(t, transport.GRPCConfig{}, insecure(uri))), "before")
			names.Answer(code)
			c := build(t, transport.GRPCConfig{ConnectTimeout: 2 * time.Second}, insecure(uri))
			if s, err := c.Open(testContext(t), transport.MethodADS); err == nil {
				s.Close()
				t.Fatal("a stream to a server whose name is not known")
			}
			names.Answer(dnsmessage.RCodeSuccess)
			wantEcho(t, open(t, c), "after")
		})
	}
}

// While a Unix socket is gone, or a process that was killed left it behind, attempts fail; once a process
// listens there again, they succeed.
func TestSocketIsLost(t *testing.T) {
	for name, left := range map[string]bool{"gone": false, "left behind": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			socket := func() *net.UnixListener {
				l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			l := socket()
			l.SetUnlinkOnClose(!left)
			l.Close()
			c := build(t, transport.GRPCConfig{}, insecure("unix:"+path))
			_, err := c.Open(testContext(t), transport.MethodADS)
			wantConnectError(t, err, "unix:"+path, codes.Unavailable, path)
			if left {
				os.Remove(path)
			}
			serve(t, socket(), echo)
			wantEcho(t, open(t, c), "after")
		})
	}
}
