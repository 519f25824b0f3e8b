package statuspage_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/statuspage"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// rig is a client with its scripted server and its pages.
type rig struct {
	testing.TB
	srv   *testutil.Server
	c     *client.Client
	pages http.Handler
	nacks chan client.AnswerInfo
}

func newRig(t testing.TB, change ...func(*statuspage.Config, *client.Client)) *rig {
	t.Helper()
	r := &rig{TB: t, srv: testutil.NewServer(), nacks: make(chan client.AnswerInfo, 1)}
	boot, err := bootstrap.Server(r.srv.Target())
	r.must(err)
	boot.Node = &corev3.Node{Id: "node-1", Cluster: "edge"}
	config := statuspage.Config{Recorder: &statuspage.Recorder{}}
	r.c, err = client.New(client.Config{
		Bootstrap: boot, Trace: config.Recorder.Trace(&client.Trace{NACK: func(a client.AnswerInfo) { r.nacks <- a }}), GRPC: transport.GRPCConfig{DialOptions: r.srv.DialOptions()},
	})
	r.must(err)
	for _, f := range change {
		f(&config, r.c)
	}
	r.pages = http.StripPrefix("/debug", statuspage.New(r.c, config))
	t.Cleanup(func() {
		r.c.Close()
		<-r.c.Done()
		r.srv.Close()
	})
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// watchAll watches a type by wildcard, and has the server send resources.
func (r *rig) watchAll(kind resource.AnyType, all ...proto.Message) *testutil.Stream {
	r.Helper()
	_, err := r.c.WatchAll(context.Background(), kind, "*", func(client.Batch[any]) {})
	r.must(err)
	st, err := r.srv.Accept(r.Context())
	r.must(err)
	r.must(st.Send(testutil.SotW(kind.TypeURL(), "1", "n1", all...)))
	r.must(r.c.Ready(r.Context()))
	return st
}

func cluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(5e9)}
}

// get asks for a page, below /debug/.
func (r *rig) get(page string) *httptest.ResponseRecorder {
	r.Helper()
	return r.do(httptest.NewRequest(http.MethodGet, "/debug/"+page, nil))
}

func (r *rig) do(req *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.pages.ServeHTTP(w, req)
	return w
}

// html is a page that is there.
func (r *rig) html(page string) string {
	r.Helper()
	w := r.get(page)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		r.Fatalf("%s: %d %s", page, w.Code, w.Header().Get("Content-Type"))
	}
	return w.Body.String()
}

// decoded reads the JSON of a page.
func decoded[T any](r *rig, page string) (v T) {
	r.Helper()
	w := r.get(page)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		r.Fatalf("%s: %d %s", page, w.Code, w.Header().Get("Content-Type"))
	}
	r.must(json.Unmarshal(w.Body.Bytes(), &v))
	return v
}
