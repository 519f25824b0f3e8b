package chaos

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameserver is a DNS server that knows one name, or answers with an error.
type nameserver struct {
	conn net.PacketConn
	wg   sync.WaitGroup
	code atomic.Uint32 // of its answers; silent for none
}

// silent is the code of a nameserver that does not answer.
const silent dnsmessage.RCode = 1 << 15

func newNameserver(t testing.TB) *nameserver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	n := &nameserver{conn: conn}
	n.wg.Go(n.run)
	t.Cleanup(func() {
		n.conn.Close()
		n.wg.Wait()
	})
	return n
}

func (n *nameserver) addr() string { return n.conn.LocalAddr().String() }

func (n *nameserver) be(code dnsmessage.RCode) { n.code.Store(uint32(code)) }

func (n *nameserver) run() {
	buf := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		code := dnsmessage.RCode(n.code.Load())
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 || code == silent {
			continue
		}
		if reply, err := answered(m, code).Pack(); err == nil {
			_, _ = n.conn.WriteTo(reply, from) // the asker asks again
		}
	}
}

// answered makes an answer of a question.
func answered(m dnsmessage.Message, code dnsmessage.RCode) *dnsmessage.Message {
	m.Response, m.Authoritative, m.RecursionAvailable, m.Additionals, m.RCode = true, true, true, nil, code
	q := m.Questions[0]
	switch {
	case code != dnsmessage.RCodeSuccess:
	case !strings.EqualFold(q.Name.String(), serverName+"."):
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	return &m
}
