package envoygateway

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/realtest"
)

// address is Envoy Gateway's; it cannot be told another.
const address = "127.0.0.1:18000"

// binary is Envoy Gateway's, made by TestMain.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "envoygateway")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "envoy-gateway")
	build := exec.Command("go", "build", "-o", binary, "github.com/envoyproxy/gateway/cmd/envoy-gateway")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "Envoy Gateway:", err)
		return 1
	}
	return m.Run()
}

// gateway is a process of Envoy Gateway, which can be killed and begin again.
type gateway struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

const config = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyGateway
gateway: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
provider:
  type: Custom
  custom:
    resource: {type: File, file: {paths: [DIR/resources]}}
    infrastructure:
      type: Host
      host: {configHome: DIR, dataHome: DIR/data, stateHome: DIR/state, runtimeDir: DIR/run}
extensionApis: {enableBackend: true}
`

const common = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: eg, namespace: default}
spec:
  gatewayClassName: eg
  listeners: [{name: http, protocol: HTTP, port: 8888}]
`

const backend = `
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: NAME, namespace: default}
spec:
  parentRefs: [{name: eg}]
  hostnames: [NAME.example.com]
  rules: [{backendRefs: [{group: gateway.envoyproxy.io, kind: Backend, name: NAME}]}]
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: {name: NAME, namespace: default}
spec: {endpoints: [{ip: {address: 127.0.0.1, port: PORT}}]}
`

// start runs Envoy Gateway with some backends until the test ends.
func start(t *testing.T, backends ...string) *gateway {
	t.Helper()
	g := &gateway{t: t, dir: t.TempDir()}
	realtest.Must(t, exec.Command(binary, "certgen", "--local", "--config-home", g.dir).Run())
	realtest.Must(t, os.WriteFile(g.path("config.yaml"), []byte(strings.ReplaceAll(config, "DIR", g.dir)), 0o600))
	realtest.Must(t, os.Mkdir(g.path("resources"), 0o700))
	g.set(backends...)
	g.begin()
	t.Cleanup(g.kill)
	return g
}

func (g *gateway) path(name string) string { return filepath.Join(g.dir, name) }

// set replaces the backends, each of which is a name or "name:port", and has a route.
func (g *gateway) set(backends ...string) {
	g.t.Helper()
	text := common
	for _, b := range backends {
		name, port, ok := strings.Cut(b, ":")
		if !ok {
			port = "3000"
		}
		text += strings.NewReplacer("NAME", name, "PORT", port).Replace(backend)
	}
	// The watched directory holds nothing else, and no file that is being written.
	next := g.path("next.yaml")
	realtest.Must(g.t, os.WriteFile(next, []byte(text), 0o600))
	realtest.Must(g.t, os.Rename(next, g.path("resources/resources.yaml")))
}

// begin starts the process and waits until it listens.
func (g *gateway) begin() {
	g.t.Helper()
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		g.t.Fatalf("something else listens on %s", address)
	}
	log, err := os.OpenFile(g.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	realtest.Must(g.t, err)
	defer log.Close()
	g.cmd = exec.Command(binary, "server", "--config-path", g.path("config.yaml"))
	g.cmd.Stdout, g.cmd.Stderr = log, log
	realtest.Must(g.t, g.cmd.Start())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(g.path("log"))
			g.t.Fatalf("Envoy Gateway does not listen: %s", text)
		}
	}
}

// kill ends the process at once.
func (g *gateway) kill() {
	if g.cmd != nil {
		_ = g.cmd.Process.Kill()
		_ = g.cmd.Wait() // the error is that it was killed
		g.cmd = nil
	}
}
