package main

import (
	"net"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// nameserver is a DNS server that knows one name, or has forgotten it. Its maker closes it.
type nameserver struct {
	conn net.PacketConn
	wg   sync.WaitGroup

	mu   sync.Mutex
	mood mood
}

// mood is how a nameserver answers.
type mood uint8

const (
	answering mood = iota
	nameGone       // NXDOMAIN
	failing        // SERVFAIL
	silent
)

func newNameserver() (*nameserver, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &nameserver{conn: conn}
	n.wg.Go(n.run)
	return n, nil
}

func (n *nameserver) addr() string { return n.conn.LocalAddr().String() }

func (n *nameserver) be(m mood) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mood = m
}

func (n *nameserver) close() {
	n.conn.Close()
	n.wg.Wait()
}

func (n *nameserver) run() {
	buf := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		n.mu.Lock()
		mood := n.mood
		n.mu.Unlock()
		if mood == silent {
			continue
		}
		if reply, err := reply(buf[:size], mood); err == nil {
			_, _ = n.conn.WriteTo(reply, from) // the asker asks again
		}
	}
}

func reply(query []byte, mood mood) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.RecursionAvailable, m.Additionals = true, true, true, nil
	if len(m.Questions) != 1 {
		m.RCode = dnsmessage.RCodeFormatError
		return m.Pack()
	}
	q := m.Questions[0]
	switch {
	case mood == failing:
		m.RCode = dnsmessage.RCodeServerFailure
	case mood == nameGone, !strings.EqualFold(q.Name.String(), serverName+"."):
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	return m.Pack()
}
