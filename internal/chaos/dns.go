package chaos

import (
	"net"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameserver is a DNS server that has the address of every name, or answers with an error.
type nameserver struct {
	conn net.PacketConn
	code atomic.Uint32 // of its answers; silent for none
}

// silent is the code of a nameserver that does not answer.
const silent dnsmessage.RCode = 1 << 15

func newNameserver(t testing.TB) *nameserver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	n := &nameserver{conn: conn}
	go n.run()
	return n
}

func (n *nameserver) run() {
	for buf := make([]byte, 1500); ; {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		code := dnsmessage.RCode(n.code.Load())
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 || code == silent {
			continue
		}
		m.Response, m.Authoritative, m.Additionals, m.RCode = true, true, nil, code
		if q := m.Questions[0]; code == dnsmessage.RCodeSuccess && q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			}}
		}
		if reply, err := m.Pack(); err == nil {
			_, _ = n.conn.WriteTo(reply, from) // the asker asks again
		}
	}
}
