package rules

// servers is what real management servers do, whatever the protocol says.
func servers() []Section {
	return []Section{{"Real servers", []Rule{
		{"S-1", "a NACK answered at once with the same response: answers are slowed down", ""},
		{"S-2", "an ACK answered with another empty response: answers are slowed down", ""},
		{"S-3", "an unknown type that ends the whole stream is suspected and held back", ""},
		{"S-4", "a stream that ends without an error ends like any other", ""},
		{"S-5", "a stream that stands and then fails is a failure to the backoff", ""},
		{"S-6", "a variant that is not supported is named as a possible cause", ""},
		{"S-7", "streams that are ended for their age come back with nothing lost", ""},
		{"S-8", "a stopped process is found by keepalive", ""},
		{"S-9", "silence about unknown names ends with the timer; a later answer is welcome", ""},
		{"S-10", "silence about a held resource means unchanged", ""},
		{"S-11", "resources made up for unknown names are delivered", ""},
		{"S-12", "partial responses delete nothing outside complete types", ""},
		{"S-13", "everything held is listed after a reconnect, so that it can be removed", ""},
		{"S-14", "a type that is emptied and filled again is told as it happened", ""},
		{"S-15", "what was not asked for is ignored, a removal of what was is honoured", ""},
		{"S-16", "an empty version is a version", ""},
		{"S-17", "an answer in several messages is several responses", ""},
		{"S-18", "a version may be empty or of any length", ""},
		{"S-19", "a server is never told another's version", ""},
		{"S-20", "a nonce belongs to its type", ""},
		{"S-21", "a wildcard that begins alone, or is polled for, has the legacy form", ""},
		{"S-22", "identical bytes are no news, nor bytes in another order", ""},
		{"S-23", "every response is acknowledged at once, an empty one too", ""},
		{"S-24", "heartbeats and entries with a time to live are accepted though not claimed", ""},
		{"S-25", "types may come in any order", ""},
		{"S-26", "both spellings of JSON are read", ""},
		{"S-27", "odd but real bootstraps load", ""},
		{"S-28", "a refused node reaches the program with the server's words", ""},
		{"S-29", "responses may be larger than 4 MiB", ""},
		{"S-30", "names that a server does not hear beside others are asked for on a new stream", ""},
	}}}
}
