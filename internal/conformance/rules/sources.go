package rules

// sources is where resources come from: transports and configuration.
func sources() []Section {
	return []Section{
		{"REST and files", []Rule{
			{"REST-1", "a poll posts the request as JSON, with the node each time", ""},
			{"REST-2", "304 is unchanged; any other failure keeps what is held", ""},
			{"REST-3", "polls are a delay and its jitter apart, one at a time", ""},
			{"REST-4", "a poll shows the last accepted version, and the error of a refused one", ""},
			{"REST-5", "polling is for single types in state of the world", ""},
			{"FILE-1", "a file holds a response as protobuf, text, JSON or YAML, and is read again when it is moved into place", ""},
			{"FILE-2", "the file must be there at the start; files that Secrets refer to are watched too", ""},
			{"FILE-3", "a file is the whole world of its type", ""},
			{"FILE-4", "a bad file leaves the last good one", ""},
			{"FILE-5", "a file may hold a list collection, which its URL names", ""},
		}},
		{"Config sources", []Rule{
			{"CFG-1", "a config source is a path, an API, ads or self; none is an error", ""},
			{"CFG-2", "the API type decides variant and aggregation", ""},
			{"CFG-3", "an aggregated source is one stream for all that resolves to it", ""},
			{"CFG-4", "versions AUTO and V3 are v3, V2 is refused", ""},
			{"CFG-5", "REST names clusters, gRPC names services, and they do not mix; a validator, which is a guard here, may refuse a response as a whole", ""},
		}},
		{"gRPC bootstrap", []Rule{
			{"BOOT-1", "the file variable wins over the inline one; unknown fields are ignored", ""},
			{"BOOT-2", "servers are in order of priority, and equal by URI, credentials and known features", ""},
			{"BOOT-3", "channel credentials: the first type that is supported", ""},
			{"BOOT-4", "call credentials: all that are supported", ""},
			{"BOOT-5", "unknown server features of any JSON type are ignored", ""},
			{"BOOT-6", "authorities have servers and a listener template of their own prefix", ""},
			{"BOOT-7", "listener name templates, escaped where they are xdstp", ""},
			{"BOOT-8", "certificate providers of known plugins", ""},
		}},
		{"Envoy bootstrap", []Rule{
			{"BOOTE-1", "node, dynamic resources, static clusters and config sources are read from YAML or JSON", ""},
			{"BOOTE-2", "ads means ads_config, and needs one", ""},
			{"BOOTE-3", "a cluster of a gRPC service must be static; a target URI is dialled as it is", ""},
			{"BOOTE-4", "the node needs id and cluster", ""},
		}},
		{"Redundancy", []Rule{
			{"FALLBACK-1", "the next server is used when this one cannot be reached and something has no value", ""},
			{"FALLBACK-2", "fallback is an authority's own", ""},
			{"FALLBACK-3", "all names are subscribed to at the next server, which is told no version of the first", ""},
			{"FALLBACK-4", "watches hear of trouble only when no server is left", ""},
			{"FALLBACK-5", "a higher server's first response ends the fallback", ""},
			{"FALLBACK-6", "a watch that begins in trouble falls back at once", ""},
			{"FALLBACK-7", "Envoy's own way of failing over", "not offered, by decision"},
		}},
	}
}
