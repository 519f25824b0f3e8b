package transport

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"golang.org/x/net/http2"
)

// written is a connection that keeps what is written.
type written struct {
	net.Conn
	all []byte
}

func (w *written) Write(b []byte) (int, error) {
	w.all = append(w.all, b...)
	return len(b), nil
}

func frameOf(kind http2.FrameType, flags http2.Flags, stream uint32, content ...byte) []byte {
	n := len(content)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), byte(kind), byte(flags)}
	return append(binary.BigEndian.AppendUint32(head, stream), content...)
}

// However gRPC cuts what it writes, the window of a message that waits is held back and all else
// passes, and what the client owes goes between two frames, and not into the headers of a stream.
//
// spec: H-5
func TestHeldBackWindow(t *testing.T) {
	preface := []byte(http2.ClientPreface)
	opens := frameOf(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, 1, 2, 3)
	ofWaiting := frameOf(http2.FrameWindowUpdate, 0, 1, 0, 1, 0, 0)
	ofOther := frameOf(http2.FrameWindowUpdate, 0, 3, 0, 0, 1, 0)
	data := frameOf(http2.FrameData, 0, 1, 7, 7, 7, 7, 7)
	first, rest := frameOf(http2.FrameHeaders, 0, 5, 4, 4), frameOf(http2.FrameContinuation, http2.FlagHeadersEndHeaders, 5, 5)
	all := slices.Concat(preface, opens, ofWaiting, data, ofOther, ofWaiting, first, rest)
	owed := frameOf(http2.FramePing, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	passed := slices.Concat(opens, data, ofOther, first, rest)
	places := map[int]bool{} // where what is owed may stand
	for _, parts := range [][][]byte{{}, {opens}, {opens, data}, {opens, data, ofOther}, {opens, data, ofOther, first, rest}} {
		places[len(slices.Concat(parts...))] = true
	}
	for cut := range len(all) + 1 {
		w := &written{}
		c := &frameConn{Conn: w, sentLeft: len(preface), streams: map[uint32]*unfinished{}}
		put := func(b []byte) {
			t.Helper()
			if n, err := c.Write(slices.Clone(b)); n != len(b) || err != nil {
				t.Fatalf("cut at %d: %d, %v", cut, n, err)
			}
			if m := c.streams[1]; m != nil {
				m.waits = true
			}
		}
		start := len(preface) + len(opens)
		put(all[:min(cut, start)])
		put(all[min(cut, start):start])
		c.owed = slices.Clone(owed)
		put(all[start:max(cut, start)])
		put(all[max(cut, start):])
		got := bytes.TrimPrefix(w.all, preface)
		at := bytes.Index(got, owed)
		if at < 0 || !places[at] || !bytes.Equal(slices.Concat(got[:at], got[at+len(owed):]), passed) {
			t.Errorf("cut at %d: % x, with what is owed at %d", cut, got, at)
		}
		if kept := c.streams[1].kept; kept != 2<<16 {
			t.Errorf("cut at %d: %d of the window are kept", cut, kept)
		}
	}
}
