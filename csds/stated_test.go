package csds_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/xdswatch/xdswatch/csds"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// An error that a server states for a resource is its status, with the version and the time of the
// response that states it, beside the value that is held, until the resource comes.
//
// spec: CSDS-3 CSDS-d ERR-6
func TestStatedErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		r := reader(t, csds.Config{}, p.c)
		p.watch(cds.Type, "a")
		st := p.accept()
		state := func(version string, code codes.Code, text string) {
			resp := testutil.SotW(cds.Type.TypeURL(), version, "n"+version)
			resp.ResourceErrors = []*discoveryv3.ResourceError{{
				ResourceName: &discoveryv3.ResourceName{Name: "a"}, ErrorDetail: status.New(code, text).Proto(),
			}}
			p.send(st, resp)
		}
		check := func(what, want string, failed *timestamppb.Timestamp) {
			t.Helper()
			row := fetch(t, r).GetConfig()[0].GetGenericXdsConfigs()[0]
			e := row.GetErrorState()
			got := fmt.Sprintf("%s %q held=%v error=%q", row.GetClientStatus(), row.GetVersionInfo(), row.GetXdsConfig() != nil, e.GetVersionInfo())
			same(t, what, got, want)
			same(t, what+": the time", e.GetLastUpdateAttempt(), failed)
			if e != nil && !strings.Contains(e.GetDetails(), what) {
				t.Errorf("%s: the error is %q", what, e.GetDetails())
			}
		}
		state("1", codes.PermissionDenied, "nope")
		first := timestamppb.Now()
		time.Sleep(time.Second)
		check("nope", `RECEIVED_ERROR "" held=false error="1"`, first)
		p.send(st, testutil.SotW(cds.Type.TypeURL(), "2", "n2", cluster("a")))
		check("a value", `ACKED "2" held=true error=""`, nil)
		time.Sleep(time.Second)
		state("3", codes.PermissionDenied, "bzzt")
		check("bzzt", `RECEIVED_ERROR "2" held=true error="3"`, timestamppb.Now())
		state("4", codes.NotFound, "gone")
		check("gone", `DOES_NOT_EXIST "" held=false error=""`, nil)
	})
}
