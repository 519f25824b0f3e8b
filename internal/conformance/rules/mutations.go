package rules

// Mutation breaks one rule at one place of internal/machine; the rule's script must notice.
type Mutation struct {
	Rule   string
	Script string
	Says   string // what is broken
	File   string // in internal/machine
	Old    string // stands there exactly once
	New    string
}

// Mutations lists them. They are run by internal/conformance/mutate.
func Mutations() []Mutation {
	return []Mutation{
		{"ACK-7", "ack-partial-sotw", "a refused version is taken", "commit.go",
			"if len(resp.lines) == 0 && !s.Delta {", "if !s.Delta {"},
		{"ACK-9", "ack-interest-rides", "a type speaks while its response is worked on", "send.go",
			"if ts.busy.on(s.ref()) {", "if ts.busy.on(Ref{}) {"},
		{"ACK-11", "ack-duplicates-sotw", "a name that comes twice is let through", "response.go",
			"resp.namedTwice(i, e)", "resp.changed = true"},
		{"ACK-12", "ack-delta-no-nonce", "a delta response without a nonce is answered", "send.go",
			"case a.nonce == \"\":", "case a.nonce == \"-\":"},
		{"BACKOFF-2", "backoff-needs-response", "every stream counts as one that had a response", "stream.go",
			"Responded: well}", "Responded: true}"},
		{"DELTA-1", "delta-first-message", "versions are listed of what is wanted by name only", "compose.go",
			"[][]*entry{wanted, held}", "[][]*entry{wanted}"},
		{"DELTA-12", "delta-heartbeat-vhds", "virtual hosts have heartbeats", "response.go",
			"version == e.version && resp.ts.typ.URL != virtualHost", "version == e.version && virtualHost != \"\""},
		{"DNE-3", "dne-not-if-held", "held resources have timers", "send.go",
			"if (!e.held() && !ts.spokenOf(e) || e.withheld) && e.timer == 0 {", "if !ts.spokenOf(e) && e.timer == 0 {"},
		{"DNE-5", "dne-stopped-by-stream-end", "timers outlive their stream", "types.go",
			"e.timer = 0\n\t\te.asked = false", "e.asked = false"},
		{"DNE-8", "dne-transient", "the transient timeout is the ordinary one", "machine.go",
			"return s.TransientTimeout", "return m.config.ResourceTimeout"},
		{"ERR-3", "err-fail-on-data-errors", "a refused update never takes the value away", "entry.go",
			"m.spoil(e, f, StatusNacked, e.ts.stream.FailOnDataErrors)", "m.spoil(e, f, StatusNacked, false)"},
		{"ERR-5", "err-ignore-deletion", "deletions are never ignored", "entry.go",
			"if e.held() && (s.KeepDeleted || m.config.KeepDeleted) {", "if e.held() && s.KeepDeleted && m.config.KeepDeleted {"},
		{"ERR-8", "err-resource-wins", "a stated absence wins over its resource", "commit.go",
			"if e.seen == resp.serial {\n\t\tm.log", "if e.seen == resp.serial && re.Code != codeNotFound {\n\t\tm.log"},
		{"ERR-10", "err-ambient-cleared", "the end of trouble is not told", "entry.go",
			"m.tellAmbient(e, nil, ambientNone)", "e.ambient = ambientNone"},
		{"FC-1", "fc-clock-stands-still", "timers run while a handler blocks", "response.go",
			"s.clock.hold(now)\n", "\n"},
		{"NODE-1", "node-first-message", "every message has the node", "send.go",
			"ts.asked, s.nodeSent = true, true", "ts.asked, s.nodeSent = true, false"},
		{"S-1", "storm-nack", "repeated NACKs are not slowed down", "storm.go",
			"stormNacks  = 3", "stormNacks  = 3000"},
		{"S-3", "server-unknown-type", "no type is ever suspected", "suspect.go",
			"doubtMost = 6 ", "doubtMost = 600 "},
		{"S-3", "server-unknown-type-delta", "types that are doubted are asked for all at once", "suspect.go",
			"other.asked && !other.answered &&", "other.asked && ts.answered &&"},
		{"S-3", "server-unknown-type-hold", "each time the type is held back as long", "suspect.go",
			"max(2*ts.hold, holdFirst)", "max(ts.hold, holdFirst)"},
		{"S-3", "server-dislikes-client", "the first request of a stream is proof enough", "suspect.go",
			"return s.responded || slices", "return !s.responded || slices"},
		{"SOTW-2", "sotw-reconnect-waiting", "the version is carried though a name is waited for", "compose.go",
			"if e.wanted() && !e.held() && e.status != StatusDoesNotExist {", "if e.wanted() && !e.held() && e.status == StatusTimeout {"},
		{"SOTW-6", "sotw-resubscribe-race", "a resource is forgotten with its last watch", "types.go",
			"if ts.silent() {\n\t\tts.forget(w.entry)", "if s.watches > 0 {\n\t\tts.forget(w.entry)"},
		{"SOTW-7", "sotw-absent-deleted", "absence deletes nothing", "commit.go",
			"m.remove(now, e, ReasonAbsent)", "_ = now"},
		{"SOTW-8", "sotw-absent-means-nothing", "absence deletes in every type", "commit.go",
			"ts.stream.Delta || !ts.typ.FullState || resp.nameless", "ts.stream.Delta || resp.nameless"},
		{"SOTW-12", "type-nameless-sotw", "a nameless entry leaves absence its meaning", "commit.go",
			"!ts.typ.FullState || resp.nameless", "!ts.typ.FullState"},
		{"STREAM-5", "stream-normal-end", "every end of a stream is told as trouble", "stream.go",
			"if !well && !fault.same(s.fault) {", "if !fault.same(s.fault) {"},
		{"STREAM-9", "stream-answers-first", "interest goes before answers", "send.go",
			"if answering && m.write(now, ts) {", "if (answering || changing) && m.write(now, ts) {"},
		{"TYPE-4", "type-unasked-sotw", "the nonce of a type that was not asked for is forgotten", "types.go",
			"ts.nonce = s.ignored[t.URL]", "ts.nonce = \"\""},
		{"WATCH-4", "watch-unchanged", "identical bytes are decoded and told", "response.go",
			"if e.held() && e.locator == locator && string(e.raw) == string(r.Payload) {", "if e.held() && e.locator == locator && len(r.Payload) == 0 {"},
		{"WILD-3", "wild-leave-legacy", "a legacy wildcard is left without naming it", "compose.go",
			"if ts.told == wildLegacy && len(ts.wild) == 0 && ts.stream.watches > 0 {", "if ts.told == wildLegacy && len(ts.wild) == 0 && ts.stream.watches > 99 {"},
		{"WILD-5", "wild-ready-empty", "an empty response makes no wildcard ready", "commit.go",
			"if ts.wildKnown && !ts.synced", "if len(resp.Resources) > 0 && ts.wildKnown && !ts.synced"},
	}
}
