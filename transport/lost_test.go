package transport_test

import (
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"google.golang.org/grpc/codes"

	"github.com/xdswatch/xdswatch/transport"
)

const dnsSilent = dnsmessage.RCode(0xffff)

// nameserver answers each query with the code that answers says, and one without an error with
// 127.0.0.1; with dnsSilent it does not.
func nameserver(t *testing.T, answers *atomic.Uint32) (addr string) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			code := dnsmessage.RCode(answers.Load())
			if m.Unpack(buf[:size]) != nil || code == dnsSilent {
				continue
			}
			m.Response, m.Authoritative, m.RCode, m.Additionals = true, true, code, nil
			if q := m.Questions[0]; code == dnsmessage.RCodeSuccess && q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
			if reply, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(reply, from) // the asker asks again
			}
		}
	}()
	return conn.LocalAddr().String()
}

// While the name of a server is not known, attempts fail, in their time; once it is, they succeed.
func TestNameIsLost(t *testing.T) {
	_, port, err := net.SplitHostPort(serveTCP(t, echo).addr)
	if err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]dnsmessage.RCode{
		"gone": dnsmessage.RCodeNameError, "failing": dnsmessage.RCodeServerFailure, "silent": dnsSilent,
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && code == dnsSilent {
				t.Skip("long: five seconds")
			}
			t.Parallel()
			var answers atomic.Uint32
			uri := "dns://" + nameserver(t, &answers) + "/xds.test:" + port
			wantEcho(t, open(t, build(t, transport.GRPCConfig{}, insecure(uri))), "before")
			answers.Store(uint32(code))
			c := build(t, transport.GRPCConfig{ConnectTimeout: 2 * time.Second}, insecure(uri))
			if s, err := c.Open(testContext(t), transport.MethodADS); err == nil {
				s.Close()
				t.Fatal("a stream to a server whose name is not known")
			}
			answers.Store(uint32(dnsmessage.RCodeSuccess))
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
