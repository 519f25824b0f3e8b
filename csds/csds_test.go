package csds_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
)

// process is a program with a client of a scripted server.
type process struct {
	*testing.T
	srv    *testutil.Server
	config client.Config
	c      *client.Client
}

func newProcess(t *testing.T, change ...func(*client.Config)) *process {
	p := &process{T: t, srv: testutil.NewServer()}
	boot, err := bootstrap.Server(p.srv.Target())
	must(t, err)
	boot.Node = &corev3.Node{Id: "node-1", Cluster: "edge"}
	p.config = client.Config{Bootstrap: boot, GRPC: transport.GRPCConfig{DialOptions: p.srv.DialOptions()}}
	for _, f := range change {
		f(&p.config)
	}
	t.Cleanup(p.srv.Close)
	p.begin()
	return p
}

// begin makes the program's client.
func (p *process) begin() {
	p.Helper()
	c, err := client.New(p.config)
	must(p.T, err)
	p.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
	p.c = c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *process) watch(kind resource.AnyType, name string, opts ...client.WatchOption) {
	p.Helper()
	_, err := p.c.Watch(context.Background(), kind, name, func(client.Event[any]) {}, opts...)
	must(p.T, err)
}

// accept takes the next stream when its first requests have come.
func (p *process) accept() *testutil.Stream {
	p.Helper()
	st, err := p.srv.Accept(p.Context())
	must(p.T, err)
	synctest.Wait()
	return st
}

func (p *process) send(st *testutil.Stream, m proto.Message) {
	p.Helper()
	must(p.T, st.Send(m))
	synctest.Wait()
}

// reader calls the service as grpcdebug does: in plaintext, with gRPC's default limits.
func reader(t testing.TB, config csds.Config, clients ...*client.Client) statusv3.ClientStatusDiscoveryServiceClient {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	csds.Register(server, config, clients...)
	go func() { _ = server.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///csds", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	must(t, err)
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
	})
	return statusv3.NewClientStatusDiscoveryServiceClient(conn)
}

func fetch(t testing.TB, r statusv3.ClientStatusDiscoveryServiceClient) *statusv3.ClientStatusResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	resp, err := r.FetchClientStatus(ctx, &statusv3.ClientStatusRequest{})
	must(t, err)
	return resp
}

// lines are the table of `grpcdebug xds status` up to v1.0.5, or as it is since: with several configs.
func lines(resp *statusv3.ClientStatusResponse, several bool) (out []string, err error) {
	if n := len(resp.GetConfig()); n == 0 || n != 1 && !several {
		return nil, fmt.Errorf("%d configs", n)
	}
	for _, c := range resp.GetConfig() {
		for _, r := range c.GetGenericXdsConfigs() {
			age := ""
			if r.GetLastUpdated() != nil {
				if err := r.GetLastUpdated().CheckValid(); err != nil {
					return nil, err
				}
				age = r.GetLastUpdated().AsTime().Format("15:04:05")
			}
			typ := r.GetTypeUrl()[strings.LastIndexByte(r.GetTypeUrl(), '.')+1:]
			line := fmt.Sprintf("%s %s %s %q %s", r.GetName(), r.GetClientStatus(), r.GetVersionInfo(), typ, age)
			if several {
				line = c.GetClientScope() + ": " + line
			}
			out = append(out, line)
		}
	}
	return out, nil
}

func cluster(name string) *clusterv3.Cluster { return &clusterv3.Cluster{Name: name} }

// invalid is refused by the message's own rules.
func invalid(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: -1}}
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// What is accepted, refused, missing, late, in error and waited for is told as it is, sorted, with the
// times and the text of the last failed update.
//
// spec: CSDS-1 CSDS-2 CSDS-3 CSDS-b CSDS-d CSDS-g
func TestRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, func(c *client.Config) { c.Bootstrap.Servers[0].Features.ResourceTimerIsTransientError = true })
		r := reader(t, csds.Config{}, p.c)
		for _, name := range []string{"good", "bad", "worse", "late"} {
			p.watch(cds.Type, name)
		}
		p.watch(eds.Type, "e")
		st := p.accept()
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("good"), cluster("bad"), invalid("worse")))
		accepted := timestamppb.Now()
		time.Sleep(31 * time.Second)
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("good"), invalid("bad"), invalid("worse")))
		refused := timestamppb.Now()
		p.watch(cds.Type, "new")
		resp := fetch(t, r)
		at := accepted.AsTime().Format("15:04:05")
		want := []string{
			`bad NACKED 1 "Cluster" ` + at, `good ACKED 2 "Cluster" ` + at, `late TIMEOUT  "Cluster" `, `new REQUESTED  "Cluster" `,
			`worse NACKED  "Cluster" `, `e TIMEOUT  "ClusterLoadAssignment" `,
		}
		got, err := lines(resp, false)
		must(t, err)
		same(t, "one config", got, want)
		_, err = lines(resp, true)
		must(t, err)
		c := resp.GetConfig()[0]
		bad := c.GetGenericXdsConfigs()[0]
		if e := bad.GetErrorState(); e.GetVersionInfo() != "2" || !proto.Equal(e.GetLastUpdateAttempt(), refused) || !strings.Contains(e.GetDetails(), "rejected") {
			t.Errorf("the error is %v", e)
		}
		held, failed := &clusterv3.Cluster{}, &clusterv3.Cluster{}
		must(t, bad.GetXdsConfig().UnmarshalTo(held))
		must(t, bad.GetErrorState().GetFailedConfiguration().UnmarshalTo(failed))
		same(t, "held", held, cluster("bad"))
		same(t, "failed", failed, invalid("bad"))
		same(t, "node", c.GetNode(), st.Requests()[0].Node())
		if e := c.GetGenericXdsConfigs()[2].GetErrorState(); !strings.Contains(e.GetDetails(), "in time") || e.GetLastUpdateAttempt() == nil {
			t.Errorf("the error of the timeout is %v", e)
		}
		if e := c.GetGenericXdsConfigs()[3].GetErrorState(); e != nil {
			t.Errorf("what is waited for has the error %v", e)
		}
	})
}

// What a server deleted does not exist. Trouble with the server is told of what is not held, and not of each resource
// that is.
//
// spec: CSDS-3
func TestServerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		r := reader(t, csds.Config{}, p.c)
		p.watch(cds.Type, "a")
		p.watch(cds.Type, "b")
		st := p.accept()
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a"), cluster("b")))
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a")))
		p.srv.SetRefuse(true)
		p.srv.DropConnections()
		p.watch(cds.Type, "c")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		rows := fetch(t, r).GetConfig()[0].GetGenericXdsConfigs()
		var got []string
		for _, row := range rows {
			got = append(got, fmt.Sprint(row.GetName(), " ", row.GetClientStatus(), " ", row.GetErrorState() != nil))
		}
		same(t, "rows", got, []string{"a ACKED false", "b DOES_NOT_EXIST true", "c REQUESTED true"})
	})
}

// A client has one config at least, and one for each scope; merged there is always one.
//
// spec: CSDS-a CSDS-g
func TestScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		each, merged := reader(t, csds.Config{}, p.c), reader(t, csds.Config{Merge: true}, p.c)
		none := reader(t, csds.Config{})
		check := func(what string, r statusv3.ClientStatusDiscoveryServiceClient, old bool, want ...string) {
			t.Helper()
			resp := fetch(t, r)
			if got, err := lines(resp, true); err != nil || !cmp.Equal(got, want) {
				t.Errorf("%s: %q, %v", what, got, err)
			}
			if _, err := lines(resp, false); (err == nil) != old {
				t.Errorf("%s: grpcdebug v1.0.5 says %v", what, err)
			}
		}
		check("no client", none, true)
		check("nothing watched", each, true)
		check("nothing watched, merged", merged, true)
		p.watch(cds.Type, "b", client.InScope("blue"))
		check("one scope", each, true, `blue: b REQUESTED  "Cluster" `)
		p.watch(cds.Type, "a")
		p.watch(cds.Type, "c")
		check("two scopes", each, false, `: a REQUESTED  "Cluster" `, `: c REQUESTED  "Cluster" `, `blue: b REQUESTED  "Cluster" `)
		check("two scopes, merged", merged, true, `: a REQUESTED  "Cluster" `, `: b REQUESTED  "Cluster" `, `: c REQUESTED  "Cluster" `)
		other := newProcess(t)
		s := csds.New(csds.Config{}, p.c)
		s.Add("mesh", other.c)
		other.watch(cds.Type, "m", client.InScope("red"))
		resp, err := s.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
		must(t, err)
		same(t, "scope of a client with a name", resp.GetConfig()[2].GetClientScope(), "mesh/red")
		p.c.Close()
		<-p.c.Done()
		resp, err = s.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
		must(t, err)
		same(t, "configs after a client is closed", len(resp.GetConfig()), 1)
		same(t, "node of a client without a stream", resp.GetConfig()[0].GetNode().GetUserAgentName(), "xdswatch")
	})
}

// A collection has a row while it is waited for.
func TestCollections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		r := reader(t, csds.Config{}, p.c)
		_, err := p.c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
		must(t, err)
		st := p.accept()
		got, err := lines(fetch(t, r), false)
		must(t, err)
		same(t, "before", got, []string{`* REQUESTED  "Cluster" `})
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a")))
		same(t, "after", fetch(t, r).GetConfig()[0].GetGenericXdsConfigs()[0].GetName(), "a")
	})
}

const marker = "MARK3R"

// Contents are left out on request, by type, and when there are too many.
//
// spec: CSDS-c
func TestContents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.watch(cds.Type, "a")
		p.watch(cds.Type, "b")
		p.watch(eds.Type, "e")
		st := p.accept()
		big := cluster("b")
		big.AltStatName = strings.Repeat("x", 1000)
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "1", "n1", cluster("a"), big))
		e := &endpointv3.ClusterLoadAssignment{ClusterName: "e"}
		p.send(st, testutil.SotW(eds.Type.TypeURL(), "1", "e1", e))
		for _, tt := range []struct {
			name   string
			config csds.Config
			req    *statusv3.ClientStatusRequest
			want   string
		}{
			{"all", csds.Config{}, nil, "a+ b+ e+"},
			{"asked to leave out", csds.Config{}, &statusv3.ClientStatusRequest{ExcludeResourceContents: true}, "a- b- e-"},
			{"configured to leave out", csds.Config{ExcludeContents: true}, nil, "a- b- e-"},
			{"some types' contents", csds.Config{Contents: []string{eds.Type.TypeURL()}}, nil, "a- b- e+"},
			{"some types", csds.Config{Types: []string{eds.Type.TypeURL()}}, nil, "e+"},
			{"some bytes", csds.Config{MaxContents: 500}, nil, "a+ b- e+"},
			{"some bytes of all", csds.Config{MaxContents: proto.Size(cluster("a")) + proto.Size(e) - 1}, nil, "a+ b- e-"},
		} {
			resp, err := csds.New(tt.config, p.c).FetchClientStatus(t.Context(), tt.req)
			must(t, err)
			var got []string
			for _, r := range resp.GetConfig()[0].GetGenericXdsConfigs() {
				got = append(got, r.GetName()+map[bool]string{true: "+", false: "-"}[r.GetXdsConfig() != nil])
			}
			same(t, tt.name, strings.Join(got, " "), tt.want)
		}
	})
}

// A stream has an answer for each request. Matchers of nodes are refused.
//
// spec: CSDS-f
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		r := reader(t, csds.Config{}, p.c)
		st, err := r.StreamClientStatus(t.Context())
		must(t, err)
		for i := range 3 {
			p.watch(cds.Type, fmt.Sprint("c", i))
			must(t, st.Send(&statusv3.ClientStatusRequest{}))
			resp, err := st.Recv()
			must(t, err)
			same(t, "rows", len(resp.GetConfig()[0].GetGenericXdsConfigs()), i+1)
		}
		matchers := &statusv3.ClientStatusRequest{NodeMatchers: []*matcherv3.NodeMatcher{{}}}
		must(t, st.Send(matchers))
		if _, err := st.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("matchers on a stream: %v", err)
		}
		if _, err := r.FetchClientStatus(t.Context(), matchers); status.Code(err) != codes.InvalidArgument {
			t.Errorf("matchers: %v", err)
		}
		if st, err = r.StreamClientStatus(t.Context()); err == nil {
			err = st.CloseSend()
		}
		must(t, err)
		if _, err := st.Recv(); err == nil || status.Code(err) != codes.Unknown { // io.EOF
			t.Errorf("after the end: %v", err)
		}
	})
}

// grpcs answers as the service of grpc-go does: unsorted, with the year 1 and all contents.
type grpcs struct {
	statusv3.UnimplementedClientStatusDiscoveryServiceServer
	err  error
	rows []*statusv3.ClientConfig_GenericXdsConfig
}

func (g *grpcs) FetchClientStatus(context.Context, *statusv3.ClientStatusRequest) (*statusv3.ClientStatusResponse, error) {
	return &statusv3.ClientStatusResponse{Config: []*statusv3.ClientConfig{{ClientScope: "xds:///svc", GenericXdsConfigs: g.rows}}}, g.err
}

// What another service of the process says follows, by the same rules.
//
// spec: CSDS-e
func TestOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		p.watch(cds.Type, "mine")
		accepted := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		other := &grpcs{rows: []*statusv3.ClientConfig_GenericXdsConfig{
			{TypeUrl: eds.Type.TypeURL(), Name: "e", LastUpdated: timestamppb.New(time.Time{})},
			{TypeUrl: cds.Type.TypeURL(), Name: "c", XdsConfig: inAny(t, cluster("c"))},
			{
				TypeUrl: sds.Type.TypeURL(), Name: "s", XdsConfig: inAny(t, secret()), LastUpdated: timestamppb.New(accepted),
				ErrorState: &adminv3.UpdateFailureState{Details: "no", FailedConfiguration: inAny(t, secret())},
			},
		}}
		config := csds.Config{Others: []statusv3.ClientStatusDiscoveryServiceServer{other}}
		resp := fetch(t, reader(t, config, p.c))
		got, err := lines(resp, true)
		must(t, err)
		same(t, "rows", got, []string{
			`: mine REQUESTED  "Cluster" `, `xds:///svc: c UNKNOWN  "Cluster" `, `xds:///svc: e UNKNOWN  "ClusterLoadAssignment" `,
			`xds:///svc: s UNKNOWN  "Secret" 03:04:05`,
		})
		text, err := proto.Marshal(resp)
		must(t, err)
		if strings.Contains(string(text), marker) || resp.GetConfig()[1].GetGenericXdsConfigs()[0].GetXdsConfig() == nil {
			t.Errorf("the other's contents are %s", text)
		}
		if e := resp.GetConfig()[1].GetGenericXdsConfigs()[2].GetErrorState(); e.GetDetails() != "no" || e.GetFailedConfiguration() == nil {
			t.Errorf("the other's error is %v", e)
		}
		config.Merge, config.ExcludeContents, config.Types = true, true, []string{cds.Type.TypeURL()}
		resp = fetch(t, reader(t, config, p.c))
		same(t, "node of what is merged", resp.GetConfig()[0].GetNode().GetId(), "node-1")
		got, err = lines(resp, false)
		must(t, err)
		same(t, "merged", got, []string{`c UNKNOWN  "Cluster" `, `mine REQUESTED  "Cluster" `})
		other.err = errors.New("no")
		if _, err := reader(t, config, p.c).FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{}); err == nil {
			t.Error("its error is lost")
		}
	})
}
