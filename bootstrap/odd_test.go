package bootstrap_test

import (
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
)

// JSON of odd types, nulls and templates, as the tests of gRPC's clients have it and beyond: what
// is accepted is told by [outcome] without the server itself, what is not by its fault.
//
// spec: BOOT-1 BOOT-2 BOOT-3 BOOT-4 BOOT-5 BOOT-6 BOOT-7 BOOT-8
func TestOddJSON(t *testing.T) {
	const (
		creds  = `"channel_creds":[{"type":"insecure"}]`
		server = `"xds_servers":[{"server_uri":"x:1",` + creds + `}]`
		lds    = "envoy.config.listener.v3.Listener/%s"
		ofTop  = `authority "a" template=xdstp://a/` + lds + "\n" + `authority "a" server x:1 creds=insecure`
	)
	root := func(more string) string { return `{` + server + `,` + more + `}` }
	ofServer := func(more string) string { return `{"xds_servers":[{"server_uri":"x:1",` + creds + `,` + more + `}]}` }
	template := func(name, text string) string {
		return root(`"authorities":{"` + name + `":{"client_listener_resource_name_template":` + text + `}}`)
	}
	const plain = "" // nothing but the server
	for _, c := range []struct{ doc, want string }{
		// The document.
		{`null`, "b: want an object, is null"},
		{`{} {}`, "b: line 1, column 4: invalid character '{' after top-level value"},
		{`{` + server + `,}`, "b: line 1, column 77: invalid character '}' looking for beginning of object key string"},
		{`{'xds_servers':[]}`, `b: line 1, column 2: invalid character '\'' looking for beginning of object key string`},
		{`{"xdsServers":[]}`, `b: xds_servers: required (nor has the document any field of an Envoy bootstrap); did you mean that by "xdsServers"?`},
		{`{"xds_servers":[],` + server + `}`, "b: line 1, column 19: a key is there twice"},
		{`{` + server + `,"xds_servers":[]}`, "b: line 1, column 77: a key is there twice"},
		// Servers.
		{`{"xds_servers":{}}`, "b: xds_servers: want a list, is an object"},
		{`{"xds_servers":{"server_uri":"x:1"}}`, "b: xds_servers: want a list, is an object"},
		{`{"xds_servers":[null,"x:1",[]]}`, "b: xds_servers[0]: want an object, is null\nb: xds_servers[1]: want an object, is a string\nb: xds_servers[2]: want an object, is a list"},
		{`{"xds_servers":[{"server_uri":null,"channel_creds":null}]}`, "b: xds_servers[0].server_uri: required\nb: xds_servers[0].channel_creds: required"},
		{`{"xds_servers":[{"server_uri":"","channel_creds":[]}]}`, `b: xds_servers[0].server_uri = "": must not be empty` + "\nb: xds_servers[0].channel_creds: must not be empty"},
		{`{"xds_servers":[{"server_uri":1,"channel_creds":{}}]}`, "b: xds_servers[0].server_uri = 1: want a string, is a number\nb: xds_servers[0].channel_creds: want a list, is an object"},
		// Features: what is not understood is passed over, but they are a list.
		{ofServer(`"server_features":null`), plain},
		{ofServer(`"server_features":"xds_v3"`), "b: xds_servers[0].server_features: want a list, is a string"},
		{ofServer(`"server_features":[null,1.5,true,{},[],"xds_v3","Ignore_Resource_Deletion"]`), "" +
			"notice b: xds_servers[0].server_features[1]: is a number, and no feature that this client knows\n" +
			"notice b: xds_servers[0].server_features[2]: is a boolean, and no feature that this client knows\n" +
			"notice b: xds_servers[0].server_features[3]: is an object, and no feature that this client knows\n" +
			"notice b: xds_servers[0].server_features[4]: is a list, and no feature that this client knows\n" +
			`notice b: xds_servers[0].server_features[6]: "Ignore_Resource_Deletion" is no feature that this client knows; did you mean "ignore_resource_deletion"?`},
		// Credentials: a malformed entry is a fault wherever it stands.
		{ofServer(`"call_creds":null`), plain},
		{ofServer(`"call_creds":[null]`), plain},
		{ofServer(`"call_creds":{}`), "b: xds_servers[0].call_creds: want a list, is an object"},
		{ofServer(`"call_creds":[{"type":""}]`), `b: xds_servers[0].call_creds[0].type = "": must not be empty`},
		{ofServer(`"call_creds":[{"type":"jwt_token_file"}]`), "b: xds_servers[0].call_creds[0].config.jwt_token_file: required"},
		{ofServer(`"call_creds":[{"type":"jwt_token_file","config":{"jwt_token_file":1}}]`), "b: xds_servers[0].call_creds[0].config.jwt_token_file = 1: want a string, is a number"},
		{ofServer(`"call_creds":[{"type":"x","config":"s3cret"}]`), "b: xds_servers[0].call_creds[0].config: want an object, is a string"},
		{grpcDoc(`[{"type":"insecure","config":null}]`), plain},
		{grpcDoc(`[{"type":"insecure","config":[]}]`), "b: xds_servers[0].channel_creds[0].config: want an object, is a list"},
		{grpcDoc(`[{"type":"insecure"},{"type":5},"x"]`), "b: xds_servers[0].channel_creds[1].type = 5: want a string, is a number\nb: xds_servers[0].channel_creds[2]: want an object, is a string"},
		{grpcDoc(`[null]`), `b: xds_servers[0].channel_creds: no known type among []; known: ["insecure" "tls"]`},
		{grpcDoc(`[{"type":"tls","config":{"refresh_interval":""}}]`), `b: xds_servers[0].channel_creds[0].config.refresh_interval = "": want a duration such as "1.5s"`},
		{grpcDoc(`[{"type":"tls","config":{"refresh_interval":"1m"}}]`), `b: xds_servers[0].channel_creds[0].config.refresh_interval = "1m": want a duration such as "1.5s", not negative`},
		// Node.
		{root(`"node":null`), plain},
		{root(`"node":{"id":null,"cluster":null,"locality":null,"metadata":null}`), plain},
		{root(`"node":{"id":[],"metadata":"x"}`), "b: node.id: want a string, is a list\nb: node.metadata: want an object, is a string"},
		{root(`"node":{"metadata":{"a":null,"b":[1,{"c":true}],"n":-0.5,"big":12345678901234567890}}`), `node metadata {"a":null,"b":[1,{"c":true}],"big":12345678901234567000,"n":-0.5} <nil>`},
		{root(`"node":{"metadata":{"s3cret":1e400}}`), "b: node.metadata: a number is out of the range of a double"},
		{root(`"node":{"locality":{"region":"","sub_zone":"z"}}`), `node locality "" "" "z"`},
		// Authorities: null and an empty list stand for nothing, and the top level's servers serve.
		{root(`"authorities":null`), plain},
		{root(`"authorities":[]`), "b: authorities: want an object, is a list"},
		{root(`"authorities":{"a":1}`), `b: authorities["a"]: want an object, is a number`},
		{root(`"authorities":{"a":null}`), ofTop},
		{root(`"authorities":{"a":{"xds_servers":null}}`), ofTop},
		{root(`"authorities":{"a":{"xds_servers":[]}}`), ofTop},
		{root(`"authorities":{"a":{"fallback_on_reachability_only":null}}`), ofTop},
		{root(`"authorities":{"a":{"fallback_on_reachability_only":"true"}}`), `b: authorities["a"].fallback_on_reachability_only = "true": want a boolean, is a string`},
		{root(`"authorities":{"a":{"xds_servers":[{}]}}`), `b: authorities["a"].xds_servers[0].server_uri: required` + "\n" + `b: authorities["a"].xds_servers[0].channel_creds: required`},
		{root(`"authorities":{"":{}}`), `authority "" template=xdstp:///` + lds + "\n" + `authority "" server x:1 creds=insecure`},
		// Templates begin with the authority, all of it, escaped or not.
		{template("a", `""`), ofTop},
		{template("a", `null`), ofTop},
		{template("a", `1`), `b: authorities["a"].client_listener_resource_name_template = 1: want a string, is a number`},
		{template("a", `"xdstp://a/`+lds+`"`), ofTop},
		{template("a", `"xdstp://a"`), `b: authorities["a"].client_listener_resource_name_template = "xdstp://a": must begin with "xdstp://a/"`},
		{template("a", `"xdstp://ab/T/%s"`), `b: authorities["a"].client_listener_resource_name_template = "xdstp://ab/T/%s": must begin with "xdstp://a/"`},
		{template("a", `"xds://a/T/%s"`), `b: authorities["a"].client_listener_resource_name_template = "xds://a/T/%s": must begin with "xdstp://a/"`},
		{template("", `"xdstp://x/T/%s"`), `b: authorities[""].client_listener_resource_name_template = "xdstp://x/T/%s": must begin with "xdstp:///"`},
		{template("#.com", `"xdstp://#.com/T/%s"`), `b: authorities["#.com"].client_listener_resource_name_template = "xdstp://#.com/T/%s": must begin with "xdstp://%23.com/"`},
		{template("#.com", `"xdstp://%23.com/T/%s"`), `authority "#.com" template=xdstp://%23.com/T/%s` + "\n" + `authority "#.com" server x:1 creds=insecure`},
		{root(`"client_default_listener_resource_name_template":""`), plain},
		{root(`"client_default_listener_resource_name_template":[]`), "b: client_default_listener_resource_name_template: want a string, is a list"},
		{root(`"client_default_listener_resource_name_template":"xdstp://nowhere/T/%s"`), "client template xdstp://nowhere/T/%s"},
		{root(`"server_listener_resource_name_template":null`), plain},
		{root(`"server_listener_resource_name_template":"no place"`), "server template no place"},
		// Certificate providers and services.
		{root(`"certificate_providers":null`), plain},
		{root(`"certificate_providers":{"p":null}`), `b: certificate_providers["p"]: want an object, is null`},
		{root(`"certificate_providers":{"p":{"plugin_name":null}}`), `b: certificate_providers["p"].plugin_name: required`},
		{root(`"certificate_providers":{"p":{"plugin_name":"x","config":"s3cret"}}`), `notice b: certificate_providers["p"].plugin_name: "x" is no plugin that gRPC has, and its config is a string, not an object; the provider is ignored`},
		{root(`"certificate_providers":{"p":{"plugin_name":"unknown","config":7},"q":{"plugin_name":"y","config":{}}}`), `certificate provider "q" y {}` + "\n" + `notice b: certificate_providers["p"].plugin_name: "unknown" is no plugin that gRPC has, and its config is a number, not an object; the provider is ignored`},
		{root(`"certificate_providers":{"p":{"plugin_name":"file_wacher","config":[]}}`), `notice b: certificate_providers["p"].plugin_name: "file_wacher" is no plugin that gRPC has, and its config is a list, not an object; the provider is ignored; did you mean "file_watcher"?`},
		{root(`"certificate_providers":{"p":{"plugin_name":"file_watcher","config":"s3cret"}}`), `b: certificate_providers["p"].config: want an object, is a string`},
		{root(`"certificate_providers":{"p":{"plugin_name":"file_watcher","config":null}}`), `certificate provider "p" file_watcher `},
		{root(`"allowed_grpc_services":{"x":null}`), `b: allowed_grpc_services["x"]: want an object, is null`},
		{root(`"allowed_grpc_services":{"x":{}}`), `b: allowed_grpc_services["x"].channel_creds: required`},
		{root(`"allowed_grpc_services":{"x":{` + creds + `,"call_creds":null}}`), `allowed "x" creds=insecure`},
	} {
		boot, err := bootstrap.Parse("b", []byte(c.doc))
		got := "\n" + outcome(boot, err)
		got = strings.Replace(got, "\nserver x:1 creds=insecure\n", "\n", 1)
		got = strings.Replace(got, "\nclient template %s\n", "\n", 1)
		if got = strings.Trim(got, "\n"); got != c.want {
			t.Errorf("%s\ngot:  %s\nwant: %s", c.doc, got, c.want)
		}
	}
}
