package view

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil"
)

// Each part says which server sent it, with the features of that entry of the bootstrap, though
// another entry, or a source that the bootstrap does not have, is the same process.
//
// spec: VIEW-65
func TestOriginHasItsServersFeatures(t *testing.T) {
	srv := testutil.StartManagementServer(t, testutil.ManagementConfig{})
	boot, err := bootstrap.Server(srv.Addr())
	must(t, err)
	trusted, resuming := boot.Servers[0], boot.Servers[0]
	trusted.Features.TrustedXDSServer = true
	resuming.Features.ResumeVersion = true
	boot.Authorities = map[string]bootstrap.Authority{"far": {Servers: []bootstrap.ManagementServer{trusted}}}
	c, err := client.New(client.Config{Bootstrap: boot, Variant: client.VariantDelta})
	must(t, err)
	defer func() {
		c.Close()
		<-c.Done()
	}()
	const far = "xdstp://far/envoy.config.cluster.v3.Cluster/c"
	must(t, srv.Set("1", res(t, "rds r *=near,"+far), res(t, "cds near static:1.1.1.1"), res(t, "cds "+far+" static:2.2.2.2")))
	root := Root{Type: RootRoutes, Name: "r"}
	follow := func(opts ...client.WatchOption) *Snapshot {
		t.Helper()
		v, err := New(t.Context(), c, root, Config{Options: opts})
		must(t, err)
		t.Cleanup(v.Stop)
		must(t, v.Ready(t.Context()))
		return v.Snapshot()
	}
	s := follow()
	for _, tt := range []struct {
		what string
		got  Origin
		want bootstrap.Features
	}{
		{"the routes", s.Routes[0].Origin, boot.Servers[0].Features},
		{"the cluster of the same server", s.Cluster("near").Origin, boot.Servers[0].Features},
		{"the cluster of an authority", s.Cluster(far).Origin, trusted.Features},
		{"the endpoints in it", s.Cluster(far).Endpoints.Origin, trusted.Features},
		{"what a source brought", follow(client.FromSource(bootstrap.Source{Servers: []bootstrap.ManagementServer{resuming}})).Routes[0].Origin, resuming.Features},
	} {
		if tt.got.Server == nil || *tt.got.Server != (Server{boot.Servers[0].URI, tt.want}) || tt.got.Version == "" {
			t.Errorf("the origin of %s is %+v of version %s, want the features %+v", tt.what, tt.got.Server, tt.got.Version, tt.want)
		}
	}
	if s.Routes[0].Server != s.Cluster("near").Server {
		t.Error("resources of one server do not share it")
	}
}

// An error says what is wrong at the management server, but does not pass its status off as one of
// the data plane: a gRPC handler or picker that returns it would end its RPC with that code.
//
// spec: VIEW-28
func TestErrorsHaveNoStatus(t *testing.T) {
	d := newDriver(t, []string{"rds", "r"}, nil)
	d.run("start")
	cause := status.Error(codes.PermissionDenied, "not for you")
	fail := func(kind, name string, event client.EventKind, as client.ErrorKind) {
		d.event(kind, name, client.Event[any]{Kind: event, Err: &client.ResourceError{Kind: as, Type: kinds[kind].TypeURL(), Name: name, Err: cause}})
		d.step()
	}
	check := func(what string, err error) {
		t.Helper()
		var re *client.ResourceError
		if _, has := status.FromError(err); has || !errors.As(err, &re) || !errors.Is(err, cause) {
			t.Errorf("%s is %v (status: %v), want an error of the resource without a status", what, err, has)
		}
	}
	fail("rds", "r", client.EventFailed, client.ErrorStream)
	check("the error of the root", d.core.snapshot.Err)
	d.run("rds r 1 *=a,b,c")
	fail("cds", "a", client.EventFailed, client.ErrorRejected)
	d.run("cds b 1 static:1.1.1.1 ; cds c 1 eds")
	fail("eds", "c", client.EventFailed, client.ErrorData)
	fail("cds", "b", client.EventAmbientError, client.ErrorStream)
	fail("rds", "r", client.EventAmbientError, client.ErrorStream)
	s := d.core.snapshot
	check("the error of a cluster", s.Cluster("a").Err())
	check("the note of a cluster", s.Cluster("b").Note())
	check("the note of its endpoints", s.Cluster("c").Note())
	check("the note of the routes", s.Routes[0].Note)

	l := &Listeners{}
	l.takeAll(&client.Event[any]{Kind: client.EventFailed, Err: &client.ResourceError{Kind: client.ErrorStream, Name: "*", Err: cause}})
	check("the error of all listeners", l.trouble)
}
