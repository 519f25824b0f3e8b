package dialer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/dialer"
)

// listen is a listener that nobody accepts from: the kernel does.
func listen(t *testing.T) (net.Listener, uint32) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	return lis, uint32(lis.Addr().(*net.TCPAddr).Port)
}

// newView follows the cluster "root" on a server that has it, and the resources besides.
func newView(t *testing.T, port uint32, more ...proto.Message) *view.View {
	t.Helper()
	m := viewtest.Complete(t)
	viewtest.Set(t, m, "1", append(more, viewtest.Cluster("root"), viewtest.Assignment("root", viewtest.At(port)))...)
	v, err := view.New(t.Context(), viewtest.Client(t, m), view.Root{Type: view.RootCluster, Name: "root"}, view.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDialContext(t *testing.T) {
	ctx := viewtest.Patience(t)
	root, port := listen(t)
	other, otherPort := listen(t)
	gone, gonePort := listen(t)
	gone.Close()
	several := viewtest.At(gonePort) // VIEW-62
	several.LbEndpoints[0].GetEndpoint().AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{
		{Address: viewtest.At(otherPort).LbEndpoints[0].GetEndpoint().GetAddress()},
	}
	v := newView(t, port, viewtest.Cluster("several"), viewtest.Assignment("several", several), viewtest.Cluster("a:b|other"), viewtest.Assignment("a:b|other", viewtest.At(otherPort)),
		viewtest.Cluster("empty"), viewtest.Assignment("empty"), viewtest.Aggregate(t, "all", "empty", "a:b|other"))
	d := dialer.New(v, dialer.Config{})
	for address, want := range map[string]net.Listener{"root:5432": root, "root": root, "a:b|other": other, "all": other, "several": other} {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if got := conn.RemoteAddr().String(); got != want.Addr().String() {
			t.Errorf("%s is at %s, want %s", address, got, want.Addr())
		}
		conn.Close()
	}
	for cluster, want := range map[string]string{
		"empty":   `cluster "empty": `,
		"missing": `"missing"`,
	} {
		if _, err := d.Dial(ctx, cluster); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", cluster, err, want)
		}
	}
	if _, err := d.Dial(ctx, "missing"); !errors.Is(err, client.ErrDoesNotExist) {
		t.Errorf("a missing cluster has the error %v", err)
	}
}

// A connection can be closed in one direction, as TCP's can.
func TestHalfClosed(t *testing.T) {
	ctx := viewtest.Patience(t)
	lis, port := listen(t)
	go func() {
		conn, err := lis.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn) // until the program has ended what it sends
		_, _ = conn.Write(append(all, " back"...))
	}()
	conn, err := dialer.New(newView(t, port), dialer.Config{}).Dial(ctx, "root")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "there and"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); string(text) != "there and back" {
		t.Errorf("the answer is %q, %v", text, err)
	}
}

// spec: VIEW-14
func TestConnectionHoldsItsCluster(t *testing.T) {
	ctx := viewtest.Patience(t)
	_, port := listen(t)
	v := newView(t, port)
	if err := v.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	conn, err := dialer.New(v, dialer.Config{}).Dial(ctx, "root")
	if err != nil {
		t.Fatal(err)
	}
	holds := func() (n int) {
		for _, w := range v.Dump().Watched {
			n += w.Holds
		}
		return n
	}
	if n := holds(); n != 1 {
		t.Errorf("%d holds while connected, want 1", n)
	}
	conn.Close()
	conn.Close()
	if n := holds(); n != 0 {
		t.Errorf("%d holds after the connection, want 0", n)
	}
}

func TestAttempts(t *testing.T) {
	ctx := viewtest.Patience(t)
	gone, gonePort := listen(t)
	gone.Close()
	_, port := listen(t)
	m := viewtest.Management(t)
	viewtest.Set(t, m, "1", viewtest.Cluster("root"), viewtest.Assignment("root", viewtest.Locality(0, map[uint32]uint32{gonePort: 1, port: 1})))
	v, err := view.New(t.Context(), viewtest.Client(t, m), view.Root{Type: view.RootCluster, Name: "root"}, view.Config{})
	if err != nil {
		t.Fatal(err)
	}
	patient, strict := dialer.New(v, dialer.Config{Attempts: 5}), dialer.New(v, dialer.Config{})
	var failed error
	for range 10 {
		conn, err := patient.Dial(ctx, "root")
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if conn, err := strict.Dial(ctx, "root"); err != nil {
			failed = err
		} else {
			conn.Close()
		}
	}
	if !errors.Is(failed, syscall.ECONNREFUSED) {
		t.Errorf("one attempt each ended with %v", failed)
	}
}

// A cluster that asks for TLS is not dialled in plain text unasked.
func TestTransportSockets(t *testing.T) {
	ctx := viewtest.Patience(t)
	_, port := listen(t)
	safe := viewtest.Cluster("safe")
	safe.TransportSocket = &corev3.TransportSocket{Name: "tls"}
	v := newView(t, port, []proto.Message{safe, viewtest.Assignment("safe", viewtest.At(port))}...)
	if _, err := dialer.New(v, dialer.Config{}).Dial(ctx, "safe"); err == nil || !strings.Contains(err.Error(), "AllowTransportSocket") {
		t.Errorf("the error is %v", err)
	}
	var dialled string
	d := dialer.New(v, dialer.Config{AllowTransportSocket: true, Dial: func(_ context.Context, network, address string) (net.Conn, error) {
		dialled = network + " " + address
		client, _ := net.Pipe()
		return client, nil
	}})
	conn, err := d.Dial(ctx, "safe")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if !strings.HasPrefix(dialled, "tcp 127.0.0.1:") {
		t.Errorf("dialled %q", dialled)
	}
}
