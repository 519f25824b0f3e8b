package file_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/transport"
)

// However a stream ends, a receiver that waits hears of it, and nothing is left.
func TestEnds(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a"))
	ends := map[string]func(transport.Conn, transport.Stream, context.CancelFunc){
		"stream":     func(_ transport.Conn, s transport.Stream, _ context.CancelFunc) { s.Close() },
		"connection": func(c transport.Conn, _ transport.Stream, _ context.CancelFunc) { _ = c.Close() },
		"context":    func(_ transport.Conn, _ transport.Stream, cancel context.CancelFunc) { cancel() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, path)
			conn := r.conn()
			defer conn.Close()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s, err := conn.Open(ctx, transport.MethodADS)
			must(t, err)
			r.stream = s
			go r.receive()
			r.ask(clusterURL)
			r.want("1|a")
			end(conn, s, cancel)
			select {
			case err := <-r.ended:
				if status.Code(err) != codes.Canceled {
					t.Errorf("the stream ended with %v", err)
				}
			case <-time.After(patience):
				t.Fatal("the receiver waits on")
			}
			if _, err := s.Recv(); status.Code(err) != codes.Canceled {
				t.Errorf("after its end the stream says %v", err)
			}
			if err := s.Send(nil); !errors.Is(err, transport.ErrStreamEnded) {
				t.Errorf("Send after the end: %v", err)
			}
			s.Close()
		})
	}
}

func TestClosedConnection(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a"))
	conn := newRig(t, path).conn()
	must(t, conn.Close())
	must(t, conn.Close())
	_, err := conn.Open(context.Background(), transport.MethodADS)
	wantIs(t, err, transport.ErrClosed)
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	_, err = newRig(t, path).conn().Open(ctx, transport.MethodADS)
	wantIs(t, err, cause)
}

func TestSendRefusesNonsense(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a"))
	r := open(t, path)
	for _, msg := range [][]byte{nil, {0xff}, {0x22, 0x05}, {0x22, 0x01, 'x', 0x32, 0x02, 0x12, 0x05}} {
		if err := r.stream.Send(msg); status.Code(err) != codes.InvalidArgument {
			t.Errorf("Send(%x): %v", msg, err)
		}
	}
}

// Names that have parameters are names.
//
// spec: DYN-1
func TestLocators(t *testing.T) {
	t.Parallel()
	path := at(t, "eds.pb")
	place(t, path, answer("1", "a"))
	r := open(t, path)
	p := wire.NewParams(map[string]string{"env": "prod"})
	for _, name := range []string{"a", "b"} { // the second is asked for anew
		must(t, r.stream.Send(wire.AppendName(wire.AppendSotW(nil, clusterURL, "", r.nonce, nil, nil), name, p)))
		r.want("1|a")
	}
	if err := r.stream.Send(append(wire.AppendSotW(nil, clusterURL, "", "", nil, nil), 7<<3|2, 1, 0xff)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a locator that does not parse: %v", err)
	}
}

// Streams of one connection read the file each for itself.
func TestSeveralStreams(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.pb")
	place(t, path, answer("1", "a"))
	one, two := newRig(t, path), newRig(t, path)
	conn := one.conn()
	defer conn.Close()
	for _, r := range []*rig{one, two} {
		var err error
		r.stream, err = conn.Open(context.Background(), transport.MethodADS)
		must(t, err)
		go r.receive()
		r.ask(clusterURL)
		r.want("1|a")
	}
	place(t, path, answer("2", "a"))
	one.want("2|a")
	two.want("2|a")
	one.stream.Close()
	place(t, path, answer("3", "a"))
	two.want("3|a")
}
