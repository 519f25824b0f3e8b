package client_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xdswatch/xdswatch/authority"
	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
)

// A name that cannot be asked for is refused at once, and nothing goes to the wire.
// spec: ERR-12 AUTH-3 CTX-1
func TestBadNames(t *testing.T) {
	const reserved = `a key that begins with "xds." is the client's to set`
	tests := []struct {
		name string
		is   error
		text string
	}{
		{"", authority.ErrEmptyName, "it is empty"},
		{"*", client.ErrCollection, "WatchAll"},
		{"xdstp://known/" + clusterName + "/*", authority.ErrGlob, "collection"},
		{"xdstp://known/" + clusterName + "/*", client.ErrCollection, "WatchAll"},
		{"xdstp://known/" + clusterName + "Collection/a", client.ErrCollection, "list"},
		{"xdstp://known/" + clusterName + "/a#entry=b", authority.ErrWrongType, "ClusterCollection"},
		{"xdstp://known/" + clusterName + "/a#b", nil, "neither alt= nor entry="},
		{"xdstp://known/" + clusterName + "/a#alt=http://known/" + clusterName + "/b", nil, "scheme xdstp"},
		{"xdstp://known/" + clusterName + "/a#alt=xdstp://other/" + clusterName + "/b", bootstrap.ErrUnknownAuthority, "the alternative"},
		{"xdstp://known/envoy.config.listener.v3.Listener/a", authority.ErrWrongType, "type"},
		{"xdstp://unknown/" + clusterName + "/a", bootstrap.ErrUnknownAuthority, `which has "known"`},
		{"xdstp:///" + clusterName + "/a", bootstrap.ErrUnknownAuthority, `""`},
		{"xdstp://KNOWN/" + clusterName + "/a", bootstrap.ErrUnknownAuthority, `which has "known"`},
		{"xdstp:", nil, `"//" must follow it`},
		{"xdstp:known/" + clusterName + "/a", nil, `"//" must follow it`},
		{"xdstp://known", nil, "no '/' ends the authority"},
		{"xdstp://known/", nil, "type at byte 14: is empty"},
		{"xdstp://known//a", nil, "type at byte 14: is empty"},
		{"xdstp://known/" + clusterName + "/a?k=1&k=2", nil, "a key is repeated"},
		{"xdstp://known/" + clusterName + "/a?xds.node.id=1", nil, reserved}, // CTX-1
		{"xdstp://known/" + clusterName + "/a?xds.node.id=1#entry=b", nil, reserved},
		{"xdstp://known/" + clusterName + "/a#alt=xdstp://known/" + clusterName + "/b%3Fxds.node.id=1", nil, reserved},
		{"xdstp://known/" + clusterName + "/a?k=@1", nil, "a value that begins with '@' is reserved"},
	}
	withKnown := func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"known": {}} }
	inBubble(t, func(t *testing.T, r *rig) {
		for _, tt := range tests {
			_, err := r.c.Watch(context.Background(), cds.Type, tt.name, func(client.Event[any]) {})
			var re *client.ResourceError
			if !errors.As(err, &re) || re.Kind != client.ErrorConfig || re.Name != tt.name || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("name %q: %v, want a config error that is %v", tt.name, err, tt.is)
				continue
			}
			for _, part := range []string{tt.text, `for node "node-1"`, "envoy.config.cluster.v3.Cluster"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("name %q: %q is not in %q", tt.name, part, err)
				}
			}
			if strings.Count(err.Error(), "xds: ") != 1 {
				t.Errorf("name %q: the error begins twice: %v", tt.name, err)
			}
		}
		_, err := r.c.WatchAll(context.Background(), cds.Type, "some", func(client.Batch[any]) {})
		if want := `xds: envoy.config.cluster.v3.Cluster "some" for node "node-1": one resource is watched with Watch, a collection with WatchAll: `; !errors.Is(err, client.ErrCollection) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("a collection that is none: %v", err)
		}
		_, err = r.c.WatchAll(context.Background(), cds.Type, "xdstp://known/"+clusterName+"/*#entry=x", func(client.Batch[any]) {})
		if !errors.Is(err, authority.ErrFragment) {
			t.Errorf("a glob with a directive: %v", err)
		}
		synctest.Wait()
		if n := len(r.srv.Streams()); n != 0 {
			t.Errorf("%d streams for nothing", n)
		}
	}, withKnown)
}

// What a server has named is asked for as it is, whatever its context parameters.
//
// spec: CTX-1
func TestReceivedNames(t *testing.T) {
	const (
		base     = "xdstp://known/" + clusterName + "/x/"
		params   = "?xds.node.id=1"
		one, two = base + "a" + params, base + "b" + params
		all      = base + "*" + params
	)
	inBubble(t, func(t *testing.T, r *rig) {
		_, err := r.c.Watch(t.Context(), cds.Type, one, func(client.Event[any]) {}, client.Received())
		must(t, err)
		_, err = r.c.WatchAll(t.Context(), cds.Type, all, func(client.Batch[any]) {}, client.Received())
		must(t, err)
		_, err = r.c.Watch(t.Context(), cds.Type, two+"#alt="+url.QueryEscape(one), func(client.Event[any]) {}, client.Received())
		must(t, err)
		r.latest(r.accept(), "cds ["+all+" "+one+" "+two+"]")
	}, func(c *client.Config) { c.Bootstrap.Authorities = map[string]bootstrap.Authority{"known": {}} })
}
