package rules

// store is what the client keeps for a start without a server.
func store() []Section {
	return []Section{
		{"Last known good", []Rule{
			{"LKG-1", "what is accepted is kept, and only that; no Secret and nothing with inline keys is written", ""},
			{"LKG-2", "a resource is kept by authority, type, full name and parameters, with version, server, time and the end of its time to live", ""},
			{"LKG-3", "what is loaded is decoded and validated as a response is; what fails is passed over and reported", ""},
			{"LKG-4", "a loaded value is marked stale until a server speaks of it, and claimed to no server", ""},
			{"LKG-5", "a server's word replaces a stale value, and removes what is kept; its silence does not", ""},
			{"LKG-6", "what is too old, or whose time to live is over, is not loaded", ""},
			{"LKG-7", "files are replaced atomically and private; what is broken in them is passed over and reported", ""},
			{"LKG-8", "any server that answers goes before the store", ""},
			{"LKG-9", "stale values are told when every server has failed or a second has passed; they keep no timer, fallback or request back", ""},
		}},
	}
}
