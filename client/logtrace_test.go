package client_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// What happens between client and server, as lines.
func TestLogTrace(t *testing.T) {
	lines := &logBuffer{}
	inBubble(t, func(t *testing.T, r *rig) {
		r.watch("a")
		st := r.accept()
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a", "1"))))
		synctest.Wait()
		bad := testutil.SotW(cds.Type.TypeURL(), strings.Repeat("v", 5000), "n2", cluster("a", "1"))
		bad.Resources[0].Value = []byte("no message")
		must(t, st.Send(bad))
		synctest.Wait()
		r.c.Close()
		<-r.c.Done()
	}, func(c *client.Config) {
		c.Trace = client.LogTrace(slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{
			Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				switch a.Key {
				case "time", "level", "server", "bytes", "stream":
					return slog.Attr{}
				case "version":
					a.Value = slog.StringValue(a.Value.String()[:1])
				case "error":
					a.Value = slog.StringValue(a.Value.String()[:3])
				}
				return a
			},
		})))
	})
	const kind = " type=type.googleapis.com/envoy.config.cluster.v3.Cluster"
	want := `msg="xds: stream up"
msg="xds: request"` + kind + `
msg="xds: response"` + kind + ` version=1 nonce=n1 resources=1 ignored=false control_plane=""
msg="xds: ACK"` + kind + ` version=1 nonce=n1
msg="xds: response"` + kind + ` version=v nonce=n2 resources=1 ignored=false control_plane=""
msg="xds: NACK"` + kind + ` version=v nonce=n2 error=res
`
	if d := cmp.Diff(want, lines.text()); d != "" {
		t.Error(d)
	}
}

// Texts of a server are cut, and a logger that does not want them costs next to nothing.
func TestLogTraceBounds(t *testing.T) {
	lines := &logBuffer{}
	trace := client.LogTrace(slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})))
	trace.Response(client.ResponseInfo{Type: strings.Repeat("t", 1<<16), Version: strings.Repeat("v", 1<<20)})
	if n := len(lines.text()); n > 3000 {
		t.Errorf("a line has %d bytes", n)
	}
}

func BenchmarkLogTraceOff(b *testing.B) {
	trace := client.LogTrace(slog.New(slog.NewTextHandler(&logBuffer{}, nil)))
	for b.Loop() {
		trace.Request(client.RequestInfo{})
	}
}
