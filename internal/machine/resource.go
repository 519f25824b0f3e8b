package machine

import (
	"errors"
	"fmt"
	"time"
)

// accept makes a payload the held value, and begins its notice. The argument as is the name under which the server gave it.
func (m *Machine) accept(now time.Time, sub *subscription, raw []byte, version string, as given) *Notice {
	m.returned(sub)
	m.leaveCollection(sub)
	sub.hold(raw, as)
	sub.version, sub.updated = version, now.UnixNano()
	sub.become(StatusAcked, nil)
	// DNE-4: a value ends the waiting.
	sub.timer = 0
	sub.credit()
	sub.gen++
	sub.setRenewed(false)
	n := m.noticeTo(sub, NoticeUpdated, sub.watches(), sub.audience())
	n.Raw, n.Attributes = sub.raw, sub.attributes()
	return n
}

// leaveCollection tells the watches of the collection that a held value, which is about to be replaced or dropped, is no
// member any more, if its name is an alias by now.
func (m *Machine) leaveCollection(sub *subscription) {
	if sub.target() != nil { // ALIAS-2
		n := m.noticeTo(sub, NoticeDoesNotExist, nil, sub.audience())
		n.Version, n.Reason, n.Stale = "", ReasonRemoved, false // a server has spoken of the name
	}
}

// returned tells the operator that a resource is back whose deletion was ignored.
func (m *Machine) returned(sub *subscription) {
	// ERR-5: it returns.
	if sub.keptDeleted() {
		sub.endLease(leaseGrace)
		m.log(sub, information, "a resource that the server had deleted is back")
	}
}

// confirm notes that a held value was sent again unchanged.
func (m *Machine) confirm(sub *subscription, version string) {
	m.returned(sub)
	sub.version = version // DELTA-9: also of what is unchanged
	sub.credit()
	m.endFault(sub)
}

// endFault ends what was wrong with a held value, or a collection that is complete.
func (m *Machine) endFault(sub *subscription) {
	had := sub.fault()
	if sub.become(StatusAcked, nil); had == nil {
		return
	}
	// ERR-10: the end of what was wrong is told, but not to watches that were told of trouble with the server last.
	m.report(sub, sub.outOfTrouble(), sub.audience())
}

// markComplete: the first state of a collection is complete.
func (m *Machine) markComplete(now time.Time, c *collection, version string) {
	c.become(StatusAcked, nil)
	c.complete, c.timer = true, 0
	m.storeComplete(now, c)
	c.from = 0
	m.noticeTo(&c.subscription, NoticeSynced, c.watches(), nil).Version = version
	m.remindOfTrouble(&c.subscription)
}

// noteFault notes a fault of the resource, or the collection, itself. With drop a held value goes. The same
// fault again is told only to watches that were told of trouble with the server since.
func (m *Machine) noteFault(sub *subscription, f *Fault, status Status, drop bool) {
	if drop {
		m.dropState(sub)
	}
	m.setStatus(sub, status, sub.reason, f, sub.audience())
}

// setStatus gives a subscription a status, and reports it to the watches of the name and to all, which are watches of
// collections, unless it is what they were told last.
func (m *Machine) setStatus(sub *subscription, status Status, reason Reason, f *Fault, all []*Watch) {
	to := sub.watches()
	// DNE-6, WATCH-4: the same is told again only to watches that were told of trouble with the server since.
	if sub.status == status && (f == nil || f.same(sub.fault())) {
		to, all = sub.inTrouble(), nil
	}
	// DNE-4, DNE-9: an absence, a refused value and an error are answers.
	// ERR-7: the client remembers the error until the server gives or confirms a value, or states something else.
	sub.become(status, f)
	sub.reason, sub.timer = reason, 0
	if !sub.usable() {
		sub.credit()
	}
	m.report(sub, to, all)
}

// dropState drops the value of a resource, or the first state of a collection. The members of the collection have statements
// of their own.
func (m *Machine) dropState(sub *subscription) {
	// LKG-5: the store forgets it too, also where the value was never loaded from there.
	m.unstore(sub)
	switch {
	case !sub.usable():
	case sub.isCollection():
		sub.of.complete, sub.from, sub.status = false, 0, StatusRequested // so that setStatus reports what follows
	default:
		m.leaveCollection(sub)
		sub.letGo()
		// DELTA-10: no version is left to list.
		sub.version, sub.from, sub.status = "", 0, StatusRequested
		sub.strip()
		sub.gen++
	}
}

// takeDeletion notes that there is no such resource, since the server said so or was silent. A held value stays if the client is
// configured to keep what servers delete.
func (m *Machine) takeDeletion(now time.Time, sub *subscription, reason Reason) {
	// ERR-4, ERR-5: what is held goes, unless the program keeps what servers delete.
	if sub.held() && sub.link().keepFor() != 0 {
		m.ignoreDeletion(now, sub, reason)
		return
	}
	m.noteAbsent(sub, reason)
}

// noteAbsent notes that there is no such resource.
func (m *Machine) noteAbsent(sub *subscription, reason Reason) {
	all := sub.informed()
	sub.of.cache.aliases.remove(sub)
	m.dropState(sub)
	m.setStatus(sub, StatusDoesNotExist, reason, nil, all)
	// DELTA-10: the client stays subscribed to the name.
	if !sub.lives() {
		sub.of.cache.drop(sub) // a collection's member
	}
}

// ErrDeletionKept says that the client ignores a deletion, for good or for a while.
var ErrDeletionKept = errors.New("the server deleted the resource; the last value is kept")

// ignoreDeletion ignores a deletion (gRFC A53), for good or for the grace that the program chose. The log says so once. The
// watches are told an ambient error.
func (m *Machine) ignoreDeletion(now time.Time, sub *subscription, reason Reason) {
	// U-14, S-34: an error of its own, and a grace.
	err, grace := ErrDeletionKept, sub.link().keepFor()
	if grace > 0 {
		err = fmt.Errorf("%w for %v, unless the resource returns", err, grace)
	}
	// ERR-5: the operator is told once.
	if sub.status != StatusDoesNotExist {
		m.log(sub, information, "the server deleted a resource ("+reason.String()+"); as configured, the last value is kept")
		if sub.reason = reason; grace > 0 {
			m.lease(now, sub, leaseGrace, grace)
		}
	}
	m.noteFault(sub, &Fault{Kind: FaultData, Err: err, At: now}, StatusDoesNotExist, false)
}
