package httptransport_test

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/internal/viewtest"
	"github.com/xdswatch/xdswatch/load"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/view/httptransport"
)

// Requests are reported to the management server, and what was dropped.
func TestReportLoad(t *testing.T) {
	loads := viewtest.NewLoads()
	ctx, m := viewtest.Patience(t), viewtest.Management(t, loads.Option())
	report, err := proto.Marshal(&orcav3.OrcaLoadReport{NamedMetrics: map[string]float64{"x": 2}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(load.MetricsHeader, base64.StdEncoding.EncodeToString(report))
		if r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusBadGateway)
		}
		if r.URL.Path == "/breaks" {
			panic(http.ErrAbortHandler)
		}
	}))
	defer s.Close()
	at := viewtest.At(uint32(s.Listener.Addr().(*net.TCPAddr).Port))
	full := viewtest.Reported(viewtest.Cluster("full"))
	full.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(0)}}}
	dropped := viewtest.Assignment("dropped", at)
	dropped.Policy = &endpointv3.ClusterLoadAssignment_Policy{}
	if err := protojson.Unmarshal([]byte(`{"drop_overloads": [{"category": "flood", "drop_percentage": {"numerator": 100}}]}`), dropped.Policy); err != nil {
		t.Fatal(err)
	}
	viewtest.Set(t, m, "1", append(viewtest.Listener(t, `"*"`,
		`{match: {prefix: /full}, route: {cluster: full}}`, `{match: {prefix: /dropped}, route: {cluster: dropped}}`, `{match: {prefix: /}, route: {cluster: all}}`),
		viewtest.Aggregate(t, "all", "leaf"), viewtest.Reported(viewtest.Cluster("leaf")), viewtest.Assignment("leaf", at),
		full, viewtest.Assignment("full", at), viewtest.Reported(viewtest.Cluster("dropped")), dropped)...)
	c := viewtest.Client(t, m)
	r := loads.Reporter(t, c)
	v, err := view.New(t.Context(), c, view.Root{Type: view.RootListener, Name: "listener"}, view.Config{})
	if err != nil {
		t.Fatal(err)
	}
	transport := httptransport.New(v, httptransport.Config{Load: r})
	user := &http.Client{Transport: transport}
	get := func(path string, n int) {
		for range n {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://backend"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := user.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	}
	get("/works", 1)
	loads.Await(t)
	get("/works", 4)
	get("/fails", 3)
	get("/breaks", 1)
	get("/full", 2)
	get("/dropped", 6)
	transport.Close()
	r.Close()
	for name, want := range map[string]viewtest.Load{
		"leaf":    {Issued: 9, Succeeded: 5, Failed: 4, Localities: "here", Metrics: 16},
		"full":    {Dropped: 2},
		"dropped": {Dropped: 6},
		"all":     {},
	} {
		if got := loads.Of(name); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}
