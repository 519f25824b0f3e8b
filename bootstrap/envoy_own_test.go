package bootstrap_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/bootstrap"
)

const restCluster = `{"name":"c","load_assignment":{"endpoints":[{"lb_endpoints":[{"endpoint":{"address":{"socket_address":{"address":"h","port_value":1}}}}]}]}},` +
	`{"name":"d","load_assignment":{"endpoints":[{"lb_endpoints":[{"endpoint":{"address":{"pipe":{"path":"/run/d"}}}}]}]}}`

// ownDoc is an Envoy bootstrap without ads_config, of dynamic_resources.
func ownDoc(dynamic string) string {
	return `{"node":{"id":"a","cluster":"b"},"dynamic_resources":{` + dynamic + `},"static_resources":{"clusters":[` + restCluster + `]}}`
}

const (
	anyService    = `"grpc_services":[{"google_grpc":{"target_uri":"x:1"}}]`
	listenersType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	clustersType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
)

// What an Envoy bootstrap asks for comes in Envoy's order, each with who answers and how
// long the start waits for it.
//
// spec: AUTH-1 BOOTE-1 BOOTE-2 BOOTE-4 DNE-10 CFG-3 REST-3 REST-5
func TestStartup(t *testing.T) {
	const (
		ads      = `"ads_config":{"api_type":"GRPC",` + anyService + `}`
		glob     = "xdstp://x/envoy.config.listener.v3.Listener/*"
		locator  = `"lds_resources_locator":"` + glob + `"`
		grpcAPI  = `"api_config_source":{"api_type":"AGGREGATED_DELTA_GRPC",` + anyService + `}`
		fallback = 15 * time.Second
	)
	server := bootstrap.ManagementServer{URI: "x:1", ChannelCreds: bootstrap.Insecure()}
	delta := server
	delta.Delta = true
	perType := server
	perType.PerType = true
	alsoListed := func(dynamic string) string { // a source for the authority x
		return strings.TrimSuffix(ownDoc(dynamic), "}") + `,"config_sources":[{"authorities":[{"name":"x"}],"initial_fetch_timeout":"3s",` + grpcAPI + `}]}`
	}
	source := func(s bootstrap.ManagementServer, authorities ...string) *bootstrap.Source {
		return &bootstrap.Source{Servers: []bootstrap.ManagementServer{s}, Authorities: authorities, InitialFetchTimeout: fallback}
	}
	listeners := func(s *bootstrap.Source) bootstrap.Subscription {
		return bootstrap.Subscription{TypeURL: listenersType, Collection: "*", Source: s, InitialFetchTimeout: fallback}
	}
	type subscriptions = []bootstrap.Subscription
	for name, c := range map[string]struct {
		doc  string
		want subscriptions
	}{
		"nothing": {ownDoc(ads), nil},
		"both, of ads": {
			ownDoc(ads + `,"lds_config":{"ads":{},"initial_fetch_timeout":"0s"},"cds_config":{"ads":{},"initial_fetch_timeout":"1.5s"}`),
			subscriptions{
				{TypeURL: clustersType, Collection: "*", InitialFetchTimeout: 1500 * time.Millisecond},
				{TypeURL: listenersType, Collection: "*", InitialFetchTimeout: bootstrap.WaitForever},
			},
		},
		"a file": {
			ownDoc(`"lds_config":{"path_config_source":{"path":"/l.yaml","watched_directory":{"path":"/w"}}}`),
			subscriptions{listeners(source(bootstrap.ManagementServer{
				URI: "file:///l.yaml", Carrier: &bootstrap.File{Path: "/l.yaml", WatchedDirectory: "/w"},
			}))},
		},
		"a file, as it was written before": {
			ownDoc(`"lds_config":{"path":"l.pb"}`),
			subscriptions{listeners(source(bootstrap.ManagementServer{URI: "file://l.pb", Carrier: &bootstrap.File{Path: "l.pb"}}))},
		},
		"an aggregated stream": {ownDoc(`"lds_config":{` + grpcAPI + `}`), subscriptions{listeners(source(delta))}},
		"a stream of its own": {
			ownDoc(`"lds_config":{"api_config_source":{"api_type":"GRPC",` + anyService + `}}`),
			subscriptions{listeners(source(perType))},
		},
		"polling": {
			ownDoc(`"lds_config":{"api_config_source":{"api_type":"REST","cluster_names":["c","d"],"refresh_delay":"5s","request_timeout":"2s"}}`),
			subscriptions{listeners(source(bootstrap.ManagementServer{URI: "rest:c,d", PerType: true, Carrier: &bootstrap.REST{
				Endpoints: []bootstrap.RESTEndpoint{
					{Address: "dns:///h:1", Authority: "c", ChannelCreds: bootstrap.Insecure()},
					{Address: "unix:/run/d", Authority: "d", ChannelCreds: bootstrap.Insecure()},
				},
				RefreshDelay: 5 * time.Second, RequestTimeout: 2 * time.Second,
			}}))},
		},
		"a glob of ads": {
			ownDoc(ads + `,"lds_config":{"ads":{},"initial_fetch_timeout":"2s"},` + locator),
			subscriptions{{TypeURL: listenersType, Collection: glob, InitialFetchTimeout: 2 * time.Second}},
		},
		"an aggregated stream that names no service": {
			ownDoc(ads + `,"lds_config":{"api_config_source":{"api_type":"AGGREGATED_DELTA_GRPC","transport_api_version":"V3"}}`),
			subscriptions{listeners(nil)},
		},
		"a glob whose source says how long": {
			`{"node":{"id":"a","cluster":"b"},"dynamic_resources":{` + locator + `},"default_config_source":{"initial_fetch_timeout":"3s",` + grpcAPI + `}}`,
			subscriptions{{TypeURL: listenersType, Collection: glob, InitialFetchTimeout: 3 * time.Second}},
		},
		"a file that holds a list, and nothing else": {
			ownDoc(`"lds_resources_locator":"file:///l.yaml"`),
			subscriptions{{TypeURL: listenersType, Collection: "file:///l.yaml", InitialFetchTimeout: fallback}},
		},
		"a file that holds a list, beside another source": {
			ownDoc(`"lds_config":{"initial_fetch_timeout":"2s","path":"l.pb"},"lds_resources_locator":"file:///l.yaml#alt=xdstp%3A//x/a"`),
			subscriptions{{
				TypeURL: listenersType, Collection: "file:///l.yaml#alt=xdstp%3A//x/a", InitialFetchTimeout: 2 * time.Second,
				Source: &bootstrap.Source{
					Servers:             []bootstrap.ManagementServer{{URI: "file://l.pb", Carrier: &bootstrap.File{Path: "l.pb"}}},
					InitialFetchTimeout: 2 * time.Second,
				},
			}},
		},
		"a glob of a source of its own": {
			ownDoc(`"lds_config":{` + grpcAPI + `},` + locator),
			subscriptions{{TypeURL: listenersType, Collection: glob, Source: source(delta, "x"), InitialFetchTimeout: fallback}},
		},
		"a glob of a source of its own, which says whose names it has": {
			ownDoc(`"lds_config":{"authorities":[{"name":"x"},{"name":"y"}],` + grpcAPI + `},` + locator),
			subscriptions{{TypeURL: listenersType, Collection: glob, Source: source(delta, "x", "y"), InitialFetchTimeout: fallback}},
		},
		"a glob of a source of its own, which says whose names it has, beside another": {
			alsoListed(`"lds_config":{"authorities":[{"name":"x"}],` + grpcAPI + `},` + locator),
			subscriptions{{TypeURL: listenersType, Collection: glob, Source: source(delta, "x"), InitialFetchTimeout: fallback}},
		},
		"a glob that another source than its own answers for": {
			alsoListed(`"lds_config":{` + grpcAPI + `},` + locator),
			subscriptions{{TypeURL: listenersType, Collection: glob, InitialFetchTimeout: 3 * time.Second}},
		},
		"a glob of ads that another source answers for": {
			alsoListed(ads + `,"lds_config":{"ads":{},"initial_fetch_timeout":"2s"},` + locator),
			subscriptions{{TypeURL: listenersType, Collection: glob, InitialFetchTimeout: 2 * time.Second}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			boot := parse(t, c.doc)
			if diff := cmp.Diff(c.want, boot.Startup, sameConfig); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := boot.Validate(); err != nil {
				t.Error(err)
			}
			for _, s := range boot.WithDefaults().Startup {
				if s.Source != nil {
					s.Source.Servers[0].URI = "changed"
				}
			}
			if diff := cmp.Diff(c.want, boot.Startup, sameConfig); diff != "" {
				t.Errorf("what was done to a copy shows in the original, -want +got:\n%s", diff)
			}
		})
	}
	if boot := parse(t, `{"xds_servers":[{"server_uri":"x:1","channel_creds":[{"type":"insecure"}]}]}`); boot.Startup != nil {
		t.Errorf("gRPC's format asks for %v", boot.Startup)
	}
}

// spec: CFG-1 CFG-5 BOOTE-2 REST-3 REST-5 FILE-2 RATE-1
func TestEnvoyOwnSourceFaults(t *testing.T) {
	const lds = "envoy: dynamic_resources.lds_config"
	const api = lds + ".api_config_source"
	own := func(source string) string { return ownDoc(`"lds_config":{"api_config_source":{` + source + `}}`) }
	const poll = `"api_type":"REST","refresh_delay":"1s"`
	rate := func(settings string) string {
		return own(`"api_type":"GRPC",` + anyService + `,"rate_limit_settings":` + settings)
	}
	const fill = ": want a number of tokens for each second, more than 0"
	for name, c := range map[string]struct{ doc, want string }{
		"self": {
			ownDoc(`"lds_config":{"self":{}}`),
			lds + ".self: means the server that a resource came from, and a bootstrap comes from none; want ads",
		},
		"ads, of which there is none": {
			ownDoc(`"lds_config":{"path":"x"},"cds_config":{"ads":{}}`), "envoy: dynamic_resources.ads_config: required: cds_config refers to it",
		},
		"an aggregated stream of ads, of which there is none": {
			ownDoc(`"lds_config":{"path":"x"},"cds_config":{"api_config_source":{"api_type":"AGGREGATED_GRPC"}}`),
			"envoy: dynamic_resources.ads_config: required: cds_config refers to it",
		},
		"an aggregated stream of ads, of version 2": {
			ownDoc(`"ads_config":{"api_type":"GRPC",` + anyService + `},"lds_config":{"api_config_source":{"api_type":5,"transport_api_version":"V2"}}`),
			api + `.transport_api_version = "V2": version 2 of the xDS protocol is not supported; want V3`,
		},
		"no path":        {ownDoc(`"lds_config":{"path_config_source":{}}`), lds + ".path_config_source.path: required"},
		"an empty path":  {ownDoc(`"lds_config":{"path":""}`), lds + `.path = "": must not be empty`},
		"no directory":   {ownDoc(`"lds_config":{"path_config_source":{"path":"x","watched_directory":{}}}`), lds + ".path_config_source.watched_directory.path: required"},
		"path of a kind": {ownDoc(`"lds_config":{"path_config_source":"x"}`), lds + `.path_config_source: want an object, is a string`},
		"two sources":    {ownDoc(`"lds_config":{"path":"x","path_config_source":{"path":"y"}}`), lds + `.path = "x": is given beside path_config_source; want one of them`},
		"a bad timeout":  {ownDoc(`"lds_config":{"path":"x","initial_fetch_timeout":"-1s"}`), lds + `.initial_fetch_timeout = "-1s": want a duration such as "1.5s", not negative`},
		"REST with gRPC services": {
			own(poll + `,"cluster_names":["c"],` + anyService), api + ".grpc_services: grpc_services belongs to gRPC; want cluster_names",
		},
		"REST without clusters": {own(poll + `,"cluster_names":[]`), api + ".cluster_names: required with REST: at least one cluster"},
		"REST of an unknown cluster": {
			own(poll + `,"cluster_names":["c","e",""]`),
			api + `.cluster_names[1] = "e": no cluster in static_resources has this name` + "\n" + api + `.cluster_names[2] = "": must not be empty`,
		},
		"REST without delay": {own(`"api_type":"REST","cluster_names":["c"],"refresh_delay":"0s"`), api + `.refresh_delay = "0s": required with REST, more than 0`},
		"REST with a bad delay": {
			own(`"api_type":"REST","cluster_names":["c"],"refresh_delay":"-1s"`),
			api + `.refresh_delay = "-1s": want a duration such as "1.5s", not negative`,
		},
		"REST without timeout": {own(poll + `,"cluster_names":["c"],"request_timeout":"0s"`), api + `.request_timeout = "0s": must be more than 0`},
		"gRPC with clusters": {
			own(`"api_type":"GRPC","cluster_names":["c"]`),
			api + ".cluster_names: cluster_names belongs to REST; want grpc_services\n" + api + ".grpc_services: required: one gRPC service",
		},
		"REST for ads_config": {
			ownDoc(`"ads_config":{` + poll + `,"cluster_names":["c"],` + anyService + `}`),
			`envoy: dynamic_resources.ads_config.api_type = "REST": want GRPC or DELTA_GRPC`,
		},
		"no tokens":             {rate(`{"max_tokens":0}`), api + ".rate_limit_settings.max_tokens = 0: want a number of tokens, more than 0"},
		"too many tokens":       {rate(`{"max_tokens":4294967296}`), api + ".rate_limit_settings.max_tokens = 4294967296: want a number of tokens, more than 0"},
		"no rate":               {rate(`{"fill_rate":0}`), api + ".rate_limit_settings.fill_rate = 0" + fill},
		"a rate that is none":   {rate(`{"fill_rate":"NaN"}`), api + `.rate_limit_settings.fill_rate = "NaN"` + fill},
		"a rate without end":    {rate(`{"fill_rate":"Infinity"}`), api + `.rate_limit_settings.fill_rate = "Infinity"` + fill},
		"rates that are a list": {rate(`[]`), api + ".rate_limit_settings: want an object, is a list"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, c.doc, c.want) })
	}
}

// Of what belongs to a stream every server of the source has its own.
//
// spec: RATE-1 NODE-1
func TestEnvoyStreamSettings(t *testing.T) {
	for settings, want := range map[string]struct {
		limit  *bootstrap.RateLimit
		always bool
	}{
		``:                          {},
		`,"rate_limit_settings":{}`: {limit: &bootstrap.RateLimit{MaxTokens: 100, FillRate: 10}},
		`,"rate_limit_settings":{"max_tokens":"3","fill_rate":0.5}`:                           {limit: &bootstrap.RateLimit{MaxTokens: 3, FillRate: 0.5}},
		`,"rate_limit_settings":{"fill_rate":"1e-300"},"set_node_on_first_message_only":true`: {limit: &bootstrap.RateLimit{MaxTokens: 100, FillRate: 1e-300}},
		`,"set_node_on_first_message_only":false`:                                             {always: true},
	} {
		two := strings.TrimSuffix(anyService, "]") + `,{"google_grpc":{"target_uri":"y:1"}}]`
		boot := parse(t, ownDoc(`"ads_config":{"api_type":"GRPC",`+two+settings+`}`))
		for _, s := range boot.Servers {
			if diff := cmp.Diff(want.limit, s.RateLimit); diff != "" || s.NodeOnEveryRequest != want.always {
				t.Errorf("%s: node always %t; limit, -want +got:\n%s", settings, s.NodeOnEveryRequest, diff)
			}
		}
		if l := boot.Servers[0].RateLimit; l != nil && l == boot.Servers[1].RateLimit {
			t.Errorf("%s: two servers share one limit", settings)
		}
	}
}

// Self is where the ConfigSource came from, if the program says so.
//
// spec: CFG-4
func TestSelf(t *testing.T) {
	from := bootstrap.Source{Servers: []bootstrap.ManagementServer{{URI: "from:1", ChannelCreds: bootstrap.Insecure()}}, FallbackOnReachabilityOnly: true}
	s, err := loadSources(t).ConfigSource(peer(t, `{"self":{},"initialFetchTimeout":"0s"}`), bootstrap.WithSelf(from))
	if err != nil {
		t.Fatal(err)
	}
	from.InitialFetchTimeout = bootstrap.WaitForever
	if diff := cmp.Diff(from, s, sameConfig); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := loadSources(t).ConfigSource(peer(t, `{"self":{}}`)); err == nil || !strings.Contains(err.Error(), "self: means the top-level servers, of which the bootstrap has none") {
		t.Errorf("self of a bootstrap without top-level servers: %v", err)
	}
	if _, err := loadSources(t).ConfigSource(peer(t, `{"self":{"transportApiVersion":"V2"}}`), bootstrap.WithSelf(from)); err == nil {
		t.Error("version 2 is accepted")
	}
	if _, err := loadSources(t).ConfigSource(peer(t, `{"self":{}}`), bootstrap.WithSelf(bootstrap.Source{})); err == nil {
		t.Error("a source without servers is accepted")
	}
}

// A source may have servers of several kinds, and each is judged by its own rules.
//
// spec: CFG-5
func TestValidateKinds(t *testing.T) {
	grpc := bootstrap.ManagementServer{URI: "x:1", ChannelCreds: bootstrap.Insecure()}
	file := bootstrap.ManagementServer{URI: "file:///x", Carrier: &bootstrap.File{Path: "/x"}}
	rest := bootstrap.ManagementServer{URI: "rest:c", PerType: true, Carrier: &bootstrap.REST{
		RefreshDelay: time.Second, Endpoints: []bootstrap.RESTEndpoint{{Address: "h:1", ChannelCreds: bootstrap.Insecure()}},
	}}
	change := func(s bootstrap.ManagementServer, f func(*bootstrap.ManagementServer)) bootstrap.ManagementServer {
		if s.REST() != nil {
			r := *s.REST()
			s.Carrier = &r
		}
		f(&s)
		return s
	}
	const at = "bootstrap.Config: Sources[0].Servers[0]"
	for name, c := range map[string]struct {
		server bootstrap.ManagementServer
		want   string
	}{
		"file": {file, ""},
		"rest": {rest, ""},
		"credentials of the server": {change(rest, func(s *bootstrap.ManagementServer) {
			s.ChannelCreds, s.REST().Endpoints = bootstrap.Insecure(), []bootstrap.RESTEndpoint{{Address: "h:1"}}
		}), ""},
		"nothing in particular": {change(grpc, func(s *bootstrap.ManagementServer) { s.Carrier = &bootstrap.GRPC{} }), ""},
		"no carrier, REST":      {change(grpc, func(s *bootstrap.ManagementServer) { s.Carrier = (*bootstrap.REST)(nil) }), at + ".Carrier: is a nil pointer"},
		"no carrier, gRPC":      {change(grpc, func(s *bootstrap.ManagementServer) { s.Carrier = (*bootstrap.GRPC)(nil) }), at + ".Carrier: is a nil pointer"},
		"no carrier, a file":    {change(grpc, func(s *bootstrap.ManagementServer) { s.Carrier = (*bootstrap.File)(nil) }), at + ".Carrier: is a nil pointer"},
		"a file without path": {
			bootstrap.ManagementServer{URI: "x", Delta: true, Carrier: &bootstrap.File{}},
			at + ".Delta: a file has no incremental variant\n" + at + ".Carrier.Path: required",
		},
		"polling nowhere": {
			bootstrap.ManagementServer{URI: "x", Delta: true, Carrier: &bootstrap.REST{RequestTimeout: -1}},
			at + ".Delta: REST has no incremental variant\n" +
				at + `.Carrier.RefreshDelay = "0s": required, more than 0` + "\n" + at + `.Carrier.RequestTimeout = "-1ns": must not be negative` + "\n" +
				at + ".Carrier.Endpoints: at least one endpoint is required",
		},
		"an endpoint that is none": {
			change(rest, func(s *bootstrap.ManagementServer) { s.REST().Endpoints = make([]bootstrap.RESTEndpoint, 1) }),
			at + ".Carrier.Endpoints[0].Address: required\n" + at + ".Carrier.Endpoints[0].ChannelCreds: required; bootstrap.Insecure() asks for plaintext",
		},
		"a rate that is none": {
			change(grpc, func(s *bootstrap.ManagementServer) { s.RateLimit = &bootstrap.RateLimit{FillRate: -1} }),
			at + ".RateLimit.FillRate = -1: want a number of tokens for each second, more than 0",
		},
		"a rate without end": {
			change(grpc, func(s *bootstrap.ManagementServer) { s.RateLimit = &bootstrap.RateLimit{FillRate: math.Inf(1)} }),
			at + ".RateLimit.FillRate = +Inf: want a number of tokens for each second, more than 0",
		},
		"an empty rate": {change(grpc, func(s *bootstrap.ManagementServer) { s.RateLimit = &bootstrap.RateLimit{} }), ""},
	} {
		boot := &bootstrap.Config{Sources: []bootstrap.Source{{Authorities: []string{"a"}, Servers: []bootstrap.ManagementServer{c.server, grpc, rest, file}}}}
		got := ""
		if err := boot.Validate(); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	boot := &bootstrap.Config{
		Servers: []bootstrap.ManagementServer{grpc},
		Startup: []bootstrap.Subscription{
			{TypeURL: listenersType, Collection: "*", Source: &bootstrap.Source{}},
			{TypeURL: clustersType, Collection: "*", Source: &bootstrap.Source{Servers: []bootstrap.ManagementServer{file}}},
		},
	}
	const want = "bootstrap.Config: Startup[0].Source.Servers: at least one server is required"
	if err := boot.Validate(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// What tells how a server is asked tells it from others, and defaults that are written out
// do not.
//
// spec: BOOT-2
func TestKeyOfKinds(t *testing.T) {
	base := bootstrap.ManagementServer{URI: "x:1", ChannelCreds: bootstrap.Insecure()}
	seen := map[string]int{}
	for i, f := range []func(*bootstrap.ManagementServer){
		func(*bootstrap.ManagementServer) {},
		func(s *bootstrap.ManagementServer) { s.NodeOnEveryRequest = true },
		func(s *bootstrap.ManagementServer) { s.RateLimit = &bootstrap.RateLimit{} },
		func(s *bootstrap.ManagementServer) { s.RateLimit = &bootstrap.RateLimit{MaxTokens: 1} },
		func(s *bootstrap.ManagementServer) { s.RateLimit = &bootstrap.RateLimit{FillRate: 1} },
		func(s *bootstrap.ManagementServer) { s.Carrier = &bootstrap.File{Path: "a"} },
		func(s *bootstrap.ManagementServer) { s.Carrier = &bootstrap.File{Path: "b"} },
		func(s *bootstrap.ManagementServer) { s.Carrier = &bootstrap.File{Path: "a", WatchedDirectory: "b"} },
		func(s *bootstrap.ManagementServer) { s.Carrier = &bootstrap.REST{} },
		func(s *bootstrap.ManagementServer) { s.Carrier = &bootstrap.REST{RefreshDelay: 1} },
		func(s *bootstrap.ManagementServer) { s.Carrier = &bootstrap.REST{RequestTimeout: 1} },
		func(s *bootstrap.ManagementServer) {
			s.Carrier = &bootstrap.REST{Endpoints: make([]bootstrap.RESTEndpoint, 1)}
		},
		func(s *bootstrap.ManagementServer) {
			s.Carrier = &bootstrap.REST{Endpoints: []bootstrap.RESTEndpoint{{Authority: "a"}}}
		},
		func(s *bootstrap.ManagementServer) {
			s.Carrier = &bootstrap.REST{Endpoints: []bootstrap.RESTEndpoint{{ChannelCreds: bootstrap.Insecure()}}}
		},
	} {
		s := base
		f(&s)
		if other, ok := seen[s.Key()]; ok {
			t.Errorf("servers %d and %d have one key", other, i)
		}
		seen[s.Key()] = i
	}
	a, b := base, base
	a.RateLimit, b.RateLimit = &bootstrap.RateLimit{}, &bootstrap.RateLimit{MaxTokens: 100, FillRate: 10}
	if a.Key() != b.Key() {
		t.Error("a default that is written out makes another key")
	}
}
