package examples_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// A real management server, of go-control-plane, is killed under the proxy.
func TestProxyOutlivesItsServer(t *testing.T) {
	blue := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "blue") }))
	defer blue.Close()
	server := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	if err := server.Set("1",
		testutil.APIListener("ingress", "routes"),
		testutil.RouteConfig("routes", testutil.VirtualHost("*", testutil.Route("/", "blue"))),
		testutil.EDSCluster("blue"), testutil.Endpoints("blue", blue.Listener.Addr().String()),
	); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Bootstrap: server.Bootstrap()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	proxy, err := newProxy(t.Context(), c, "ingress")
	if err != nil {
		t.Fatal(err)
	}

	server.Stop()
	answer := httptest.NewRecorder()
	proxy.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://shop.example/", nil))
	if body, _ := io.ReadAll(answer.Body); string(body) != "blue" {
		t.Errorf("status %d, %s", answer.Code, body)
	}
}

// A scripted server, in memory, says nothing. In a bubble of testing/synctest time is fake, so the
// 15 seconds until the client takes the flags for missing pass at once, and are 15 seconds exactly.
func TestFlagsOfSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testutil.StartServer(t)
		c, err := client.New(client.Config{
			Bootstrap: server.Bootstrap(), GRPC: transport.GRPCConfig{DialOptions: server.DialOptions()},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		begin := time.Now()
		applied := make(chan map[string]bool)
		if _, err := followFlags(t.Context(), c, "checkout", func(f map[string]bool) { applied <- f }); err != nil {
			t.Fatal(err)
		}

		stream, err := server.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if request, err := stream.Next(t.Context()); err != nil || !slices.Equal(request.Names(), []string{"checkout"}) {
			t.Errorf("asked for %v, %v", request, err)
		}
		if f := <-applied; f != nil || time.Since(begin) != 15*time.Second {
			t.Errorf("%v after %v", f, time.Since(begin))
		}
	})
}
