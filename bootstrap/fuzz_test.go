package bootstrap_test

import (
	"os"
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// FuzzParse: no text makes Parse panic; what it accepts is valid and complete, and is
// told the same way twice.
func FuzzParse(f *testing.F) {
	cases, probes, _ := readCases(f)
	seeds := 0
	for _, c := range append(cases, probes...) {
		if c.JSON == nil {
			continue
		}
		text := *c.JSON
		switch c.Scope {
		case "delivery", "pair-of-servers", "pair-of-call-creds":
		default:
			text = wrap(f, c)
		}
		f.Add([]byte(text))
		seeds++
	}
	files, err := filepath.Glob("testdata/*_*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(envoyDoc(toCluster, tlsCluster(`common_tls_context: {validation_context: {system_root_certs: {}}}`))))
	f.Add([]byte("a: &a [x]\nb: [*a, *a]\n"))
	f.Add([]byte("node: !!binary AQI=\ndynamic_resources: 2001-01-01\n"))
	f.Add([]byte(ownDoc(`"ads_config":{"api_type":"GRPC",` + anyService + `,"rate_limit_settings":{"max_tokens":3,"fill_rate":0.5}},` +
		`"lds_config":{"api_config_source":{"api_type":"REST","cluster_names":["c","d"],"refresh_delay":"5s"}},"cds_config":{"path":"x"}`)))
	f.Add([]byte(ownDoc(`"lds_config":{"path_config_source":{"path":"x","watched_directory":{"path":"/"}},"initial_fetch_timeout":"0s"},` +
		`"lds_resources_locator":"xdstp://x/envoy.config.listener.v3.Listener/*","cds_config":{"ads":{}}`)))
	if seeds < 80 || len(files) < 5 {
		f.Fatalf("%d seeds of cases and %d files: the corpus is lost", seeds, len(files))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		boot, err := bootstrap.Parse("fuzz", data, caseOptions()...)
		again, err2 := bootstrap.Parse("fuzz", data, caseOptions()...)
		if outcome(boot, err) != outcome(again, err2) {
			t.Fatalf("two outcomes:\n%s\n%s", outcome(boot, err), outcome(again, err2))
		}
		if err != nil {
			if boot != nil {
				t.Fatal("a Config beside an error")
			}
			return
		}
		if err := boot.Validate(); err != nil {
			t.Fatalf("accepted, but Validate: %v", err)
		}
		if boot.Node == nil || len(boot.Servers)+len(boot.Sources)+len(boot.Startup) == 0 && boot.DefaultSource == nil {
			t.Fatalf("incomplete: %+v", boot)
		}
		for i, s := range boot.Servers {
			if s.Key() != again.Servers[i].Key() {
				t.Fatalf("two keys of server %d", i)
			}
		}
		if diff := cmp.Diff(outcome(boot, nil), outcome(boot.WithDefaults(), nil)); diff != "" {
			t.Fatalf("defaults were not all filled:\n%s", diff)
		}
	})
}

// FuzzConfigSource: no ConfigSource makes the reading panic; what is accepted would do in
// a Config, and is told the same way twice.
func FuzzConfigSource(f *testing.F) {
	boot := loadSources(f, caseOptions()...)
	boot.Servers = []bootstrap.ManagementServer{{URI: "top:1", ChannelCreds: bootstrap.Insecure()}}
	for _, text := range []string{
		`{"ads":{},"authorities":[{"name":"a"},{"name":"b"}],"initialFetchTimeout":"2.5s"}`,
		`{"self":{"transportApiVersion":"V3"},"resourceApiVersion":"V2"}`,
		`{"pathConfigSource":{"path":"/x","watchedDirectory":{"path":"/"}}}`,
		`{"apiConfigSource":{"apiType":"AGGREGATED_DELTA_GRPC","grpcServices":[{"envoyGrpc":{"clusterName":"xds-1"}},{"envoyGrpc":{"clusterName":"local"}}]}}`,
		`{"apiConfigSource":{"apiType":"REST","clusterNames":["xds-1","local"],"refreshDelay":"0.5s","requestTimeout":"9s"}}`,
		`{"path":"x","initialFetchTimeout":"0s"}`,
		`{"apiConfigSource":{"apiType":"GRPC","rateLimitSettings":{"fillRate":"NaN"},"grpcServices":[{"googleGrpc":{"targetUri":"y:1",` +
			`"channelCredentials":{"sslCredentials":{"rootCerts":{"inlineBytes":"AAEC"}}}},"initialMetadata":[{"key":"a-bin","rawValue":"AAE="}],` +
			`"retryPolicy":{"retryBackOff":{"baseInterval":"1s"}}}]}}`,
	} {
		b, err := proto.Marshal(peer(f, text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cs := &corev3.ConfigSource{}
		if proto.Unmarshal(data, cs) != nil {
			return
		}
		s, err := boot.ConfigSource(cs)
		again, err2 := boot.ConfigSource(cs)
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("two outcomes:\n%v\n%v", err, err2)
		}
		if diff := cmp.Diff(s, again, sameConfig, cmpopts.IgnoreFields(bootstrap.ChannelCreds{}, "Build")); diff != "" {
			t.Fatalf("two sources:\n%s", diff)
		}
		if err != nil {
			return
		}
		c := &bootstrap.Config{DefaultSource: &s}
		if err := c.Validate(); err != nil {
			t.Fatalf("accepted, but Validate: %v", err)
		}
	})
}
