package transport_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
)

const clusterV2 = "type.googleapis.com/envoy.api.v2.Cluster"

// requestV2 has what the JSON of a request of version 2 may have, as far as it is sent.
type requestV2 struct {
	VersionInfo string `json:"version_info"`
	Node        struct {
		ID             string   `json:"id"`
		BuildVersion   string   `json:"build_version"`
		UserAgentName  string   `json:"user_agent_name"`
		UserAgent      string   `json:"user_agent_version"`
		ClientFeatures []string `json:"client_features"`
	} `json:"node"`
	ResourceNames []string `json:"resource_names"`
	TypeURL       string   `json:"type_url"`
	ResponseNonce string   `json:"response_nonce"`
	ErrorDetail   struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error_detail"`
}

// pollV2 takes the next poll, of which nothing may be unknown to version 2.
func (w *watched) pollV2(path string) (r requestV2) {
	w.t.Helper()
	p, err := w.srv.Next(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(p.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		w.t.Errorf("%s: %v", p.Body, err)
	}
	if p.Path != path {
		w.t.Errorf("polled %s, want %s", p.Path, path)
	}
	return r
}

// bodyV2 is a response with resources in JSON.
func bodyV2(version string, resources ...string) string {
	return `{"version_info":"` + version + `","type_url":"` + clusterV2 + `","resources":[` + strings.Join(resources, ",") + `]}`
}

// A server of version 2 is polled at its own paths and in its own words; what it says may be
// of either version and is of version 3 to the program.
// spec: V2-1 V2-2 V2-3 V2-4
func TestRESTVersion2(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		answer := func(version string, resources ...string) {
			w.srv.Answer(answerBody("application/json", bodyV2(version, resources...)))
		}
		var value any
		answer("1", `{"@type":"`+clusterV2+`","name":"a","alt_stat_name":"one","hosts":[{"pipe":{"path":"/p"}}]}`)
		_, err := w.client.Watch(w.t.Context(), cds.Type, "a", func(ev client.Event[any]) {
			value = ev.Value
			w.hear(ev)
		})
		if err != nil {
			w.t.Fatal(err)
		}
		r := w.pollV2("/v2/discovery:clusters")
		if r.TypeURL != clusterV2 || r.Node.ID != "me" || r.Node.BuildVersion != "xdswatch/"+client.Version || len(r.ResourceNames) != 1 {
			w.t.Errorf("asked %+v", r)
		}
		w.hears("updated a 1")
		if c, ok := value.(*clusterv3.Cluster); !ok || c.AltStatName != "one" {
			w.t.Errorf("the value is %v", value)
		}

		answer("2", `{"@type":"`+clusterURL+`","name":"a","alt_stat_name":"two"}`)
		if r := w.pollV2("/v2/discovery:clusters"); r.VersionInfo != "1" {
			w.t.Errorf("asked %+v", r)
		}
		w.hears("updated a 2")

		w.srv.Answer(answerBody("application/json", `{"version_info":"3","type_url":"`+clusterURL+`","resources":[{"@type":"`+clusterURL+`","name":"a"}]}`))
		w.pollV2("/v2/discovery:clusters")
		w.hears("updated a 3")

		answer("4", `{"@type":"type.googleapis.com/envoy.api.v2.Other","name":"a"}`)
		w.pollV2("/v2/discovery:clusters")
		w.hears("ambient error a … api.v2.Other")
		if r := w.pollV2("/v2/discovery:clusters"); r.VersionInfo != "3" || r.ErrorDetail.Code != 3 || !strings.Contains(r.ErrorDetail.Message, "api.v2.Other") {
			w.t.Errorf("asked %+v", r)
		}
	}, version2)
}

// version2 is for a server of version 2.
func version2(s *bootstrap.ManagementServer) { s.TransportV2 = true }

// A type that version 2 lacks has nothing to be polled at there.
// spec: V2-2 V2-4
func TestRESTVersion2Types(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		_, err := w.client.Watch(w.t.Context(), ecds.Type, "a", w.hear)
		if err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		w.hears("failed a … nothing is known to poll the type … TypedExtensionConfig … in version 2")
		if n := w.srv.Polls(); n != 0 {
			w.t.Errorf("%d polls", n)
		}
	}, version2)
}

// On a server of version 3 a resource of version 2 is refused.
// spec: TYPE-3
func TestRESTVersion2Unasked(t *testing.T) {
	inClientBubble(t, func(w *watched) {
		body := strings.Replace(bodyV2("1", `{"@type":"`+clusterV2+`","name":"a"}`), clusterV2, clusterURL, 1)
		w.srv.Answer(answerBody("application/json", body))
		w.watch("a")
		w.poll("a @")
		synctest.Wait()
		w.hears("failed a … envoy.api.v2.Cluster")
	})
}
