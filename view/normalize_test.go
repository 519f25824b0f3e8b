package view

import (
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/view/route"
)

// Routes come with what the HttpConnectionManager that names them does to requests.
func TestNormalization(t *testing.T) {
	named := func(routes string, change func(*hcmv3.HttpConnectionManager)) *listenerv3.FilterChain {
		hcm := manager(routes)
		change(hcm)
		return chain(hcm)
	}
	own := func(hcm *hcmv3.HttpConnectionManager) {
		hcm.MergeSlashes = true
		hcm.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: buildRoutes("own", []string{"*=a"})}
	}
	strict := func(hcm *hcmv3.HttpConnectionManager) {
		hcm.NormalizePath = wrapperspb.Bool(true)
		hcm.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_REJECT_REQUEST
		hcm.StripMatchingHostPort, hcm.StripTrailingHostDot = true, true
	}
	loose := func(hcm *hcmv3.HttpConnectionManager) {
		hcm.NormalizePath = wrapperspb.Bool(false)
		hcm.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_UNESCAPE_AND_FORWARD
		hcm.StripPortMode = &hcmv3.HttpConnectionManager_StripAnyHostPort{StripAnyHostPort: true}
	}
	kept := func(hcm *hcmv3.HttpConnectionManager) {
		hcm.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_KEEP_UNCHANGED
	}
	redirect := func(hcm *hcmv3.HttpConnectionManager) {
		hcm.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_UNESCAPE_AND_REDIRECT
	}
	d := newDriver(t, []string{"lds", "l"}, nil)
	d.run("start")
	push := func(version string, chains ...*listenerv3.FilterChain) {
		d.event("lds", "l", client.Event[any]{Kind: client.EventUpdated, Version: version, Value: &listenerv3.Listener{Name: "l", FilterChains: chains}})
		d.step()
	}
	push("1", named("r", strict), named("", own), named("s", loose), named("r", strict), named("k", kept), named("x", redirect))
	for _, input := range []string{"rds r 1 *=a", "rds s 1 *=a", "rds k 1 *=a", "rds x 1 *=a", "cds a 1 static:1.1.1.1"} {
		d.run(input)
	}
	s := d.core.snapshot
	want := map[string]route.Normalization{
		"r":   {Path: true, EscapedSlashes: route.RejectSlashes, StripMatchingPort: true, StripDot: true},
		"own": {MergeSlashes: true},
		"s":   {EscapedSlashes: route.UnescapeSlashes, StripPort: true},
		"k":   {},
		"x":   {EscapedSlashes: route.RedirectSlashes},
	}
	if len(s.Routes) != len(want) || s.Listener.Note != nil {
		t.Fatalf("%d routes, note %v", len(s.Routes), s.Listener.Note)
	}
	for _, rc := range s.Routes {
		if rc.Normalization != want[rc.Name] {
			t.Errorf("%s: %+v, want %+v", rc.Name, rc.Normalization, want[rc.Name])
		}
	}
	// A listener that changes nothing else is a new snapshot. Of two ways the first counts.
	push("2", named("r", kept), named("r", strict))
	after := d.core.snapshot
	if rc := after.Routes[0]; after.Serial != s.Serial+1 || rc.Normalization != (route.Normalization{}) {
		t.Errorf("snapshot %d: %+v", after.Serial, rc.Normalization)
	}
	if note := after.Listener.Note; note == nil || !strings.Contains(note.Error(), `routes "r"`) {
		t.Errorf("two ways: note %v", note)
	}
}
