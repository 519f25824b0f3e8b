package bootstrap_test

import (
	"slices"
	"strings"
	"testing"
)

// What tests of gRPC's clients claim of bootstraps, beside those of testdata/cases.yaml: the lines of the
// outcome that a document must have, and parts of lines that it must not have.
//
// spec: BOOT-2 BOOT-3 BOOT-4 BOOT-6 BOOT-7 NODE-3
func TestReferences(t *testing.T) {
	const (
		insecure = `"channel_creds":[{"type":"insecure"}]`
		server   = `"xds_servers":[{"server_uri":"x:1",` + insecure + `}]`
	)
	for name, c := range map[string]struct {
		doc  string
		has  []string
		lack []string
	}{
		// C-core, Basic
		"what is not known is passed over at each level": {
			`{"xds_servers":[{"server_uri":"fake:///lb","channel_creds":[{"type":"other","ignore":0},{"type":"fake","ignore":0}],"ignore":0}],
				"node":{"id":"n","locality":{"zone":"z","ignore":{}},"ignore":"x"},"authorities":{"a":{"ignore":1}},"ignore":{}}`,
			[]string{`node id="n" cluster=""`, `node locality "" "z" ""`, `server fake:///lb creds=fake`},
			nil,
		},
		// grpc-go, Node_MarshalAndUnmarshal: these are the client's own to say.
		"user agent and features in the node": {
			`{` + server + `,"node":{"id":"n","user_agent_name":"other","user_agent_version_type":{"user_agent_version":"9"},
				"user_agent_version":"9","client_features":["f"]}}`,
			[]string{
				`notice boot: node.client_features: is not known here and has no effect`,
				`notice boot: node.user_agent_name: is not known here and has no effect`,
			},
			nil,
		},
		// grpc-go, Configuration_Federation
		"authorities without anything": {
			`{` + server + `,"authorities":{"td.example":{},"#.com":{}}}`,
			[]string{
				`authority "#.com" template=xdstp://%23.com/envoy.config.listener.v3.Listener/%s`,
				`authority "td.example" template=xdstp://td.example/envoy.config.listener.v3.Listener/%s`,
				`authority "td.example" server x:1 creds=insecure`,
			},
			nil,
		},
		// grpc-go, SelectedChannelCredsAndCallCreds
		"the first of several that are known, and all tokens": {
			`{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"tls","config":{}},{"type":"insecure"}],"call_creds":[
				{"type":"jwt_token_file","config":{"jwt_token_file":"/1.jwt"}},{"type":"jwt_token_file","config":{"jwt_token_file":"/2.jwt"}}]}]}`,
			[]string{`server x:1 creds=tls call=jwt_token_file(/1.jwt) call=jwt_token_file(/2.jwt)`},
			[]string{"insecure"},
		},
		// C-core, MultipleXdsServers
		"several servers of an authority": {
			`{` + server + `,"authorities":{"a":{"xds_servers":[{"server_uri":"y:1",` + insecure + `},{"server_uri":"z:1",` + insecure + `}]}}}`,
			[]string{`authority "a" server y:1 creds=insecure`, `authority "a" server z:1 creds=insecure`},
			[]string{`authority "a" server x:1`},
		},
		// grpc-java, parseClientDefaultListenerResourceNameTemplate, parseAuthorities
		"templates are kept as they are": {
			`{` + server + `,"client_default_listener_resource_name_template":"xdstp://a.com/faketype/%s",
				"authorities":{"a.com":{"client_listener_resource_name_template":"xdstp://a.com/v1.Listener/id-%s"}}}`,
			[]string{`client template xdstp://a.com/faketype/%s`, `authority "a.com" template=xdstp://a.com/v1.Listener/id-%s`},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			boot := parse(t, c.doc, caseOptions()...)
			text := outcome(boot, nil)
			lines := strings.Split(text, "\n")
			for _, line := range c.has {
				if !slices.Contains(lines, line) {
					t.Errorf("no line %q in\n%s", line, text)
				}
			}
			for _, part := range c.lack {
				if strings.Contains(text, part) {
					t.Errorf("%q in\n%s", part, text)
				}
			}
			if n := boot.Node; n.GetUserAgentName() != "" || n.GetUserAgentVersionType() != nil || n.GetClientFeatures() != nil {
				t.Errorf("the document says what the client is: %v", n)
			}
		})
	}
}
