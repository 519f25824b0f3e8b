package machine

import (
	"math"
	"slices"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// composeSotW makes the next DiscoveryRequest: it restates everything that is wanted. nil
// means that there is nothing to say.
func (l *link) composeSotW(what debt, a reply, node []byte) [][]byte {
	added, removed := l.flushNames()
	// STREAM-3: the first request says everything.
	if !l.requested {
		added = l.allWanted()
	}
	before, form := l.form, l.nextForm()
	l.setForm(form)
	changed := form != before || len(added)+len(removed) > 0
	if form == wildLegacy {
		added = l.namedBeside(added)
		changed = form != before // the wildcard's request has no names
	} else if before == wildLegacy {
		added = l.allWanted()
	}
	l.subscribe(added)
	if !what.reply && !changed && !l.owesNode() {
		return nil
	}
	// SOTW-1, SOTW-2, ACK-7: no response was accepted on this stream. If this request has no version, later ones before the
	// first response have none either, since resume is empty then: the server still owes an answer.
	if l.firstResponse == 0 {
		l.version = l.versionToClaim()
		l.resume, l.latest, l.claimsHeld = l.version, l.version, l.version != ""
	}
	// ACK-2, ACK-3, ACK-8, SOTW-5: the accepted version, and the newest nonce.
	head := wire.AppendSotW(nil, l.cache.typ.URL, l.version, l.nonce, node, a.detail)
	if form == wildExplicit {
		head = wire.AppendName(head, star, l.params(l.cache.star))
	}
	if form == wildLegacy {
		return [][]byte{head}
	}
	// SOTW-3, SOTW-4: each request restates all names, also if there are none.
	return l.names.After(head)
}

// versionToClaim is the version of requests before the first response on a new stream: none (SOTW-2), since
// a server that compares versions would stay silent where its own is equal by chance. With
// ResumeVersion it is the last accepted one, if everything that is requested is held or known to be absent.
// Otherwise the server would be silent about the rest; and about all of it where names stand by, for a response that
// makes the server active again (gRFC A71).
func (l *link) versionToClaim() string {
	// SOTW-1, SOTW-2, P-9, S-37: the version belongs to its stream, unless the server is known to remember it.
	if !l.stream.ResumeVersion || l.stream.standsBy() || !l.allKnown() {
		return ""
	}
	return l.resume
}

// allKnown says that by this server's word each resource that is wanted is held or does not exist, and that nothing of the
// version to claim was refused.
func (l *link) allKnown() bool {
	for sub := range l.owned() {
		// SOTW-2, FALLBACK-3: the server has to send again what another server said, what is kept though deleted, what was
		// refused in this version, and what is awaited.
		if sub.foreign() || sub.keptDeleted() || sub.fault() != nil && sub.fault().Version == l.resume ||
			sub.wanted() && !sub.usable() && (sub.isCollection() || !sub.absent()) {
			return false
		}
	}
	return true
}

// noteResume notes the version that a new stream may claim once a response is accepted: none while the request of a name has
// not left, or if the response answers a wildcard that is not wanted any more, or does not answer one that is wanted. With a
// collection only a response that holds everything has such a version: others do not say which members do not exist.
func (l *link) noteResume(resp *response) {
	l.resume = ""
	if l.form != wildLegacy && (l.names.Adds() || len(l.message.fresh) > 0) {
		return
	}
	if wild := l.form != wildNone; wild == l.wantsStar() && (resp.tellsAll() || !wild && !l.hasGlobs()) {
		l.resume = resp.Version
	}
}

// hasGlobs says whether the server is or was to know of a glob of the type.
func (l *link) hasGlobs() bool {
	return slices.ContainsFunc(l.stream.sources, func(src *source) bool {
		sh := src.share(l.cache)
		return sh != nil && len(sh.globs) > 0 && src.reaches(l.stream)
	})
}

// composeDelta makes the next DeltaDiscoveryRequest: the first of a stream says all that is
// wanted and held, later ones the difference. nil means that there is nothing to say.
func (l *link) composeDelta(what debt, a reply, node []byte) [][]byte {
	// DELTA-6: later requests say the difference.
	added, removed := l.flushNames()
	first, before, form := !l.requested, l.form, l.nextForm()
	l.setForm(form)
	var members []*subscription // that are held for collections alone
	if first {
		// STREAM-3, DELTA-1: all interest, and no nonce.
		added, removed = l.allWanted(), nil
		members = l.ownedWhere(func(sub *subscription) bool { return sub.exists() && !sub.wanted() })
	} else if form == wildExplicit && before != wildExplicit || slices.ContainsFunc(added, (*subscription).isCollection) {
		added = append(added, l.awaitedAliases(added)...)
	}
	// ACK-8, DELTA-5, DELTA-6: a nonce is in its reply alone.
	msg := wire.AppendDelta(nil, l.cache.typ.URL, a.nonce, node, a.detail)
	names, named, listed, size := l.fit(first, len(msg), added, members)
	// WILD-2, P-1: names are subscribed to later; without their versions the server sends them then.
	if first && form == wildLegacy {
		named = 0
	}
	added, back := l.takeBack(names[:named])
	if !what.reply && len(added)+len(back)+len(removed) == 0 && form == before && !l.owesNode() {
		return nil
	}
	l.subscribe(added)
	l.postpone(names[named:])
	l.postpone(back)
	msg = slices.Grow(msg, size-len(msg))
	if form == wildExplicit && before != wildExplicit {
		msg = l.appendSubscribe(msg, &l.cache.star.subscription)
	}
	for _, sub := range added {
		msg = l.appendSubscribe(msg, sub)
	}
	// WILD-2, WILD-6: an explicit wildcard ends by its name.
	if form == wildNone && before != wildNone {
		msg = wire.AppendUnsubscribe(msg, star, l.params(l.cache.star))
	}
	for _, c := range removed {
		msg = wire.AppendUnsubscribe(msg, c.Name, c.Params)
	}
	for _, sub := range back {
		msg = wire.AppendUnsubscribe(msg, sub.onWire(), l.params(sub.of))
	}
	// DELTA-2: only the first request tells versions.
	if first {
		msg = l.appendVersions(msg, names, named, members, listed)
	}
	return [][]byte{msg}
}

// takeBack splits off the names that quirks have the client unsubscribe first.
func (l *link) takeBack(added []*subscription) (now, back []*subscription) {
	now = added[:0]
	for _, sub := range added {
		name := sub.onWire()
		if slices.ContainsFunc(l.stream.quirks, func(q quirk) bool { return q.takesBack(l, name) }) {
			back = append(back, sub)
		} else {
			now = append(now, sub)
		}
	}
	return now, back
}

// appendVersions lists the held versions of names[:named] and members[:listed] in a first request, those of aliases last. What
// is not listed the server has to confirm.
func (l *link) appendVersions(msg []byte, names []*subscription, named int, members []*subscription, listed int) []byte {
	var told map[string]bool // by name; nil if nothing is held by an alias
	list := func(sub *subscription, fits bool) {
		name := sub.versionName()
		// DELTA-1, S-13: versions of all that is held, for collections too.
		switch {
		// DELTA-3: the active server's own, and not that of another server, nor what it has to confirm.
		case !l.owns(sub) || !sub.listable() || sub.unconfirmed:
			l.unlisted(sub)
		case told[name]: // another subscription of the resource has listed the version
		// DELTA-2: no version is listed of a resource that a watch waits for, by whichever of its names.
		case !fits, l.waitedFor(sub):
			l.unlisted(sub)
		default:
			l.claimsHeld, sub.of.listed = true, true
			msg = wire.AppendInitialVersion(msg, name, sub.version)
			if told != nil {
				told[name] = true
			}
		}
	}
	if slices.ContainsFunc(names, (*subscription).byAlias) {
		told = map[string]bool{}
	}
	for i, sub := range names {
		if !sub.byAlias() {
			list(sub, i < named)
		}
	}
	for i, sub := range members {
		list(sub, i < listed && !l.besideWildcard(sub))
	}
	for i, sub := range names {
		if sub.byAlias() {
			list(sub, i < named)
		}
	}
	return msg
}

// besideWildcard says that a resource is watched by name, by an alias, or by a glob, so that the first request for a legacy
// wildcard does not ask for it. If that request listed its version, a server whose wildcard does not have it would state its
// removal.
func (l *link) besideWildcard(sub *subscription) bool {
	if l.form != wildLegacy {
		return false
	}
	// WILD-2: a name is subscribed to after the wildcard, and an alias is a name.
	return sub.wanted() || sub.of.isGlob() || l.cache.aliases.wanted(sub)
}

// waitedFor says that a watch waits for the value that a subscription holds: a watch of another name of the resource, or of a
// collection.
func (l *link) waitedFor(sub *subscription) bool {
	waits := func(alias []byte) bool {
		other, _ := l.lookup(alias)
		return other != nil && other.wanted() && !other.held()
	}
	if slices.ContainsFunc(sub.aliases(), waits) {
		return true
	}
	if !sub.byAlias() {
		return false
	}
	own, canonical := l.lookup([]byte(sub.versionName()))
	if own == nil {
		return l.wantsStar() || l.cache.globOf(canonical) != nil
	}
	return !own.held()
}

// awaitedAliases are the subscriptions of aliases whose resources a collection that begins waits for, but for those in added.
func (l *link) awaitedAliases(added []*subscription) []*subscription {
	// ALIAS-2, DELTA-7: the server has sent the resource for its alias, and may send it again only if the client subscribes to
	// the alias again.
	return l.ownedWhere(func(sub *subscription) bool {
		return sub.byAlias() && sub.wanted() && l.waitedFor(sub) && !slices.Contains(added, sub)
	})
}

func (l *link) appendSubscribe(msg []byte, sub *subscription) []byte {
	return wire.AppendSubscribe(msg, sub.onWire(), l.params(sub.of))
}

// fit says how many names (named), and how many versions of members (listed), fit into a delta request that has size bytes
// already; in which order the names go; and how many bytes the request then has at most. In a first request versions of
// members go before names, since the server would not state the removal of a member that is not listed. Names that do not fit
// follow in later requests.
func (l *link) fit(first bool, size int, names, members []*subscription) (ordered []*subscription, named, listed, length int) {
	budget := l.stream.budget
	switch {
	case budget == 0:
		budget = math.MaxInt
	case first:
		named, names = globsFirst(names)
	}
	for _, sub := range names[:named] {
		size += l.sizeOfName(sub)
	}
	for listed < len(members) && size+members[listed].sizeOfVersion() <= budget {
		size += members[listed].sizeOfVersion()
		listed++
	}
	for _, sub := range names[named:] {
		more := l.sizeOfName(sub)
		if first {
			more += sub.sizeOfVersion()
		}
		if size+more > budget && (named > 0 || first && l.form != wildNone) { // a first request without names is the wildcard's
			break
		}
		size += more
		named++
	}
	return names, named, listed, size
}

// globsFirst puts globs before other names: versions of their members mean nothing without
// them.
func globsFirst(subs []*subscription) (globs int, ordered []*subscription) {
	names := except(subs, (*subscription).isCollection)
	all := except(subs, func(sub *subscription) bool { return !sub.isCollection() })
	return len(all), slices.Concat(all, names)
}

// sizeOfVersion is what an initial version takes, or some bytes more.
func (sub *subscription) sizeOfVersion() int {
	return wire.SizeInitialVersion(sub.versionName(), sub.version)
}

// postpone leaves names for the next message, though the set of those that the server knows of has them.
func (l *link) postpone(subs []*subscription) {
	if len(subs) == 0 {
		return
	}
	for _, sub := range subs {
		l.names.Set(sub.onWire(), nil, false)
	}
	l.names.Flush()
	for _, sub := range subs {
		l.names.Set(sub.onWire(), l.params(sub.of), true)
	}
}

// sizeOfName is what it takes to name a subscription.
func (l *link) sizeOfName(sub *subscription) int {
	return wire.SizeName(sub.onWire(), l.params(sub.of))
}
