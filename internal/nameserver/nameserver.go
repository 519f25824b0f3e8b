// Package nameserver is a DNS server for tests, at which every name has the address 127.0.0.1.
package nameserver

import (
	"net"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Silent is the code of a server that does not answer.
const Silent dnsmessage.RCode = 1 << 15

// Server is a DNS server on a port of loopback UDP.
type Server struct {
	Addr string
	conn net.PacketConn
	code atomic.Uint32
}

// Start starts a server for the length of a test.
func Start(t testing.TB) *Server {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &Server{Addr: conn.LocalAddr().String(), conn: conn}
	go s.run()
	return s
}

// Answer makes the server answer with a code from now on: with an address if it is that of success.
func (s *Server) Answer(code dnsmessage.RCode) { s.code.Store(uint32(code)) }

func (s *Server) run() {
	for buf := make([]byte, 1500); ; {
		size, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		code := dnsmessage.RCode(s.code.Load())
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 || code == Silent {
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
			_, _ = s.conn.WriteTo(reply, from) // the asker asks again
		}
	}
}
