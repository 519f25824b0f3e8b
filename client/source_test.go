package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/testutil/script"
)

// spec: TYPE-8
func TestDecodersKnowTheirSource(t *testing.T) {
	var boot *bootstrap.Config
	trust := func(config *client.Config) {
		boot = config.Bootstrap
		boot.ClientDefaultListenerTemplate = "marked/%s"
		boot.Servers[0].Features.TrustedXDSServer = true
	}
	inBubble(t, func(t *testing.T, r *rig) {
		got := make(chan resource.Source, 1)
		kind := resource.Custom(cds.Type.TypeURL(), resource.Options{NameField: 1}, func(s resource.Source, _ []byte) (string, error) {
			got <- s
			return "", nil
		})
		_, err := r.c.Watch(t.Context(), kind, "a", func(client.Event[any]) {})
		must(t, err)
		st, err := r.srv.Accept(t.Context())
		must(t, err)
		must(t, st.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n", cluster("a", ""))))
		s := <-got
		config, ok := s.Bootstrap.(*bootstrap.Config)
		if s.Server != r.srv.Target() || !s.Trusted || !s.Validate || !ok || config.ClientDefaultListenerTemplate != "marked/%s" {
			t.Errorf("source %+v", s)
		}
	}, trust)
}

// The same name is another resource in each authority, and of each type.
// spec: CACHE-1
func TestResourcesAreKeptApart(t *testing.T) {
	authorities := func(config *client.Config) {
		config.Bootstrap.Authorities = map[string]bootstrap.Authority{"": {}, "x": {}}
	}
	inBubble(t, func(t *testing.T, r *rig) {
		kinds := script.Kinds()
		names := []string{"a", "xdstp:///envoy.config.cluster.v3.Cluster/a", "xdstp://x/envoy.config.cluster.v3.Cluster/a"}
		var told []*record
		for _, name := range names {
			_, rec := r.watchType(kinds["cds"], name)
			told = append(told, rec)
		}
		_, other := r.watchType(kinds["bar"], "a")
		st, err := r.srv.Accept(t.Context())
		must(t, err)
		frame, err := script.Response(strings.Fields("cds 1 n a=1"), false)
		must(t, err)
		must(t, st.SendBytes(frame))
		synctest.Wait()
		for i, rec := range append(told, other) {
			if heard := len(rec.all()); (heard > 0) != (i == 0) {
				t.Errorf("watch %d heard %d events of the first", i, heard)
			}
		}
	}, authorities)
}

// What a server says when it refuses the node reaches the program, with who and where, and not as a code that a handler
// which returns the error would pass on.
// spec: ERR-11 S-28
func TestRefusedNode(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		got := make(chan client.Event[any], 1)
		_, err := r.c.Watch(context.Background(), cds.Type, "a", func(ev client.Event[any]) { got <- ev })
		must(t, err)
		st, err := r.srv.Accept(t.Context())
		must(t, err)
		st.End(status.Error(codes.InvalidArgument, "node id wants four parts"))
		ev := <-got
		var re *client.ResourceError
		if !errors.As(ev.Err, &re) || re.Kind != client.ErrorStream || re.NodeID != "node-1" || re.Server != r.srv.Target() ||
			status.Code(re) != codes.Unavailable || status.Code(re.Err) != codes.InvalidArgument || !strings.Contains(re.Error(), "node id wants four parts") {
			t.Errorf("%v: %v", ev.Kind, ev.Err)
		}
	})
}
