package rules

import "github.com/xdswatch/xdswatch/internal/conformance/places"

// Machine is the folder that mutations are made in.
const Machine = "internal/machine"

// Mutation breaks one rule at the place of its comment in the machine; the rule's script must
// notice.
type Mutation struct {
	Rule   string
	In     string // the function, where the rule has other places too
	Change places.Change
	Says   string // what is broken
	Script string
}

// Mutations lists them. They are run by internal/conformance/mutate.
func Mutations() []Mutation {
	never, always, drop := places.Never(), places.Always(), places.Drop()
	return []Mutation{
		{"ACK-7", "Machine.finish", always.Of(0), "a refused version is taken", "ack-partial-sotw"},
		{"ACK-9", "", never, "a type speaks while its response is worked on", "ack-interest-rides"},
		{"ACK-11", "reader.find", drop, "a name that comes twice is let through", "ack-duplicates-sotw"},
		{"ACK-11", "Machine.findError", never, "an error of what is removed is passed over", "err-of-removed"},
		{"ACK-12", "", never, "a delta response without a nonce is answered", "ack-delta-no-nonce"},
		{"BACKOFF-2", "", always, "every stream counts as one that had a response", "backoff-needs-response"},
		{"DELTA-1", "link.appendVersions", drop, "no versions are listed", "delta-first-message"},
		{"DELTA-1", "sweep.ring", never, "no stream is begun for a type that is passed over", "fallback-delta-passed-over"},
		{"DELTA-12", "response.heartbeat", always.Of(4), "virtual hosts have heartbeats", "delta-heartbeat-vhds"},
		{"DNE-3", "", never, "held resources have timers", "dne-not-if-held"},
		{"DNE-5", "link.owesAnswer", places.Put("($) && l.stream.ref.Gen <= 1"), "names have a timer on the first stream alone", "dne-stopped-by-stream-end"},
		{"DNE-8", "Machine.AddServer", never, "the transient timeout is the ordinary one", "dne-transient"},
		{"DNE-8", "Machine.timedOut", never.Of(0), "the transient timeout says that there is no resource", "dne-transient"},
		{"ERR-3", "link.dropsRefused", never, "a refused update never takes the value away", "err-fail-on-data-errors"},
		{"ERR-4", "link.keepFor", never, "deletions are never ignored", "err-ignore-deletion"},
		{"ERR-5", "Machine.ignoreDeletion", always, "an ignored deletion is logged each time", "err-ignore-deletion"},
		{"ERR-5", "Machine.returned", never, "nobody hears that a deleted resource is back", "err-ignore-deletion"},
		{"ERR-5", "Machine.unwatch", never, "nobody hears that a deleted resource is watched no more", "err-ignore-deletion-unwatched"},
		{"ERR-8", "Machine.findError", never, "a stated absence wins over its resource", "err-resource-wins"},
		{"ERR-10", "Machine.endFault", drop, "the end of trouble is not told", "err-ambient-cleared"},
		{"FC-1", "Machine.received", drop, "timers run while a handler blocks", "fc-clock-stands-still"},
		{"LKG-5", "Machine.timedOut", never.Of(1), "a late name stays in the store though a collection lacks it", "lkg-name-in-wildcard"},
		{"NODE-1", "", always, "every message has the node", "node-first-message"},
		{"NODE-5", "link.owesNode", never, "a changed node waits for the next request", "node-params"},
		{"NODE-5", "Machine.withParams", places.Put("$[:0]"), "a new stream has the node of the bootstrap", "node-params"},
		{"S-1", "", places.Put("3000"), "repeated NACKs are not slowed down", "storm-nack"},
		{"S-3", "doubtEnough", places.Put("600"), "no type is ever suspected", "server-unknown-type"},
		{"S-3", "suspects.ended", never, "streams that stood count as barren", "server-unknown-type-silent"},
		{"S-3", "suspects.earliest", never, "types that are doubted are requested all at once", "server-unknown-type-delta"},
		{"S-3", "pauses.begin", places.Put("p.wait").Of(0, 0), "each time the type is held back as long", "server-unknown-type-hold"},
		{"S-3", "suspects.worked", always, "the first request of a stream is proof enough", "server-dislikes-client"},
		{"S-30", "", drop, "names that were added are waited for in vain", "server-version-alone"},
		{"SOTW-2", "link.versionToClaim", never.Of(0), "the version outlives its stream", "sotw-new-stream-no-version"},
		{"SOTW-2", "link.allKnown", never.Of(3), "the version is carried though a name is waited for", "sotw-reconnect-waiting"},
		{"SOTW-6", "Machine.unwatch", always, "a resource is forgotten with its last watch", "sotw-resubscribe-race"},
		{"SOTW-7", "", drop, "absence deletes nothing", "sotw-absent-deleted"},
		{"SOTW-8", "", never.Of(0), "absence deletes in every type", "sotw-absent-means-nothing"},
		{"SOTW-12", "", never, "a nameless entry leaves absence its meaning", "type-nameless-sotw"},
		{"STREAM-5", "", never, "every end of a stream is told as trouble", "stream-normal-end"},
		{"STREAM-9", "byTurn", never, "interest goes before answers", "stream-answers-first"},
		{"TYPE-4", "stream.linkTo", drop, "the nonce of a type that was not asked for is forgotten", "type-unasked-sotw"},
		{"TYPE-5", "entry.isHeld", always, "what stands beside a value does not count", "attributes-sotw"},
		{"WATCH-4", "reader.planFor", never, "identical bytes are decoded and told", "watch-unchanged"},
		{"WILD-2", "link.explicitly", never.Of(4), "structured names leave the legacy form as it is", "wild-structured-spelled"},
		{"WILD-2", "collection.attach", always.Of(1), "the newest watch chooses the form", "wild-first-chooses"},
		{"WILD-3", "Machine.send", never, "a stream goes on without its wildcard", "legacy-wildcard-sotw"},
		{"WILD-3", "link.outdated", never, "a wildcard never ends", "legacy-wildcard-delta"},
		{"WILD-3", "pauses.begin", places.Put("p.wait").Of(0, 0), "each wait for a new stream is as long", "wild-new-stream-waits"},
		{"WILD-3", "Machine.restartAt", places.Put("at").Of(0), "a wildcard ends as soon as nobody watches it", "legacy-wildcard-left"},
		{"P-1", "response.leftOut", never, "names beside a wildcard are not answered from its state", "wild-beside-names"},
		{"P-1", "link.composeDelta", never, "delta says the versions of names beside a wildcard", "wild-beside-delta"},
		{"P-1", "link.owesAnswer", always, "a server that says nothing ends what is held beside a wildcard", "wild-beside-delta-silent"},
		{"P-3", "", always, "nobody hears that a server takes the wildcard for a name", "wild-explicit-unknown"},
		{"P-4", "", never, "what was refused stays so after a resume", "delta-resume-takes-back"},
		{"P-11", "", always, "a wildcard hears of every absence", "wild-absence-not-held"},
		{"P-11", "", never, "a wildcard goes on to have a member that was refused and is gone", "wild-refused-gone-by-name"},
		{"WILD-5", "response.findCompleted", places.Put("$ && len(resp.Resources) > 0"), "an empty response makes no wildcard ready", "wild-ready-empty"},
		{"WILD-5", "subscription.ring", never, "what is silent about a wildcard has nothing, whatever is held", "wild-silent-over-names"},
		{"WILD-6", "link.setForm", never, "what only the wildcard held stays", "wild-explicit"},
		{"WILD-6", "link.composeDelta", never, "nobody unsubscribes a wildcard", "wild-explicit-delta"},
		{"ALIAS-1", "reader.findAliases", never, "a resource is found by its own name alone", "alias-watch"},
		{"DELTA-3", "link.appendVersions", never.Of(1), "versions travel to another server", "fallback-delta"},
		{"DYN-1", "link.params", places.Put("nil"), "names are requested without their parameters", "params-sotw"},
		{"DYN-1", "link.explicitly", never.Of(1), "everything is asked for by the legacy form", "params-wildcard"},
		{"DYN-2", "link.chose", always, "variants of others are taken", "params-match"},
		{"DYN-2", "reader.find", never, "variants of others are judged", "params-guarded"},
		{"DYN-3", "reader.findRemoved", always.Of(0), "what is replaced is removed", "params-replaced"},
		{"DYN-3", "reader.findRemoved", never, "a removal by name and constraints means nothing", "params-replaced-alias"},
		{"FALLBACK-1", "Machine.fallBackSource", never.Of(1), "a server that cannot be reached is always left", "fallback-nothing-lacking"},
		{"FALLBACK-3", "link.allKnown", never.Of(0), "a version is said though values are another server's", "fallback-versions"},
		{"FALLBACK-5", "Machine.revert", never, "a server that answers again is not gone back to", "case-core-fb-recover"},
		{"FALLBACK-6", "", always, "a new watch waits for the next failure", "fallback-new-watch"},
		{"GLOB-1", "", places.Put(`pattern{name[:start], ""}`), "the context of a glob's member does not count", "glob-not-recursive"},
		{"GLOB-3", "", drop, "the removal of a glob is nothing", "glob-empty"},
		{"TTL-1", "lease.ring", drop, "a time to live never runs out", "ttl-disconnected"},
		{"TTL-3", "Machine.applyPlanned", drop, "a heartbeat sets nothing anew", "case-ttl-delta"},
	}
}
