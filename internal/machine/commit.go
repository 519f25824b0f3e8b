package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// decoded takes back a task.
func (m *Machine) decoded(now time.Time, ev Decoded) {
	if ev.Task.replay != nil {
		m.replayed(ev)
		return
	}
	resp := ev.Task.response
	resp.results[ev.Task.index] = ev.Results
	m.commit(now, resp)
}

// commit takes what is decoded into the state, in the order of the wire, and ends the
// response with the last of it.
func (m *Machine) commit(now time.Time, resp *response) {
	for resp.next < len(resp.tasks) && resp.results[resp.next] != nil {
		task, results := resp.tasks[resp.next], resp.results[resp.next]
		resp.tasks[resp.next], resp.results[resp.next] = nil, nil
		resp.next++
		m.fx.Notify = slices.Grow(m.fx.Notify, len(task.Items))
		for i := range task.Items {
			m.commitItem(now, resp, &task.Items[i], results[i])
		}
	}
	if resp.next == len(resp.tasks) {
		m.finish(now, resp)
	}
}

func (m *Machine) commitItem(now time.Time, resp *response, it *Item, r Result) {
	e := it.entry
	ts := resp.ts
	if ts.entries[e.name] != e {
		if r.Err != nil {
			resp.invalid++
			resp.line(it.index, e.name, r.Err)
		} else {
			resp.valid++
		}
		return
	}
	received := &resp.Resources[it.index]
	version := resp.versionOf(received)
	switch {
	case r.Err != nil:
		m.refuse(now, resp, it.index, e, r.Err, hashOf(it.Raw))
	case r.Same:
		resp.valid++
		e.selfNamed = len(received.Name) == 0
		e.raw = r.Raw // so that the same bytes are known at once next time
		m.confirm(e, version)
	default:
		resp.valid++
		e.selfNamed = len(received.Name) == 0
		m.accept(now, e, r, version)
	}
}

// finish draws a response's conclusions: names that were invalid, removals, errors,
// absence; then the answer is owed.
func (m *Machine) finish(now time.Time, resp *response) {
	ts, s := resp.ts, resp.ts.stream
	live := m.current(resp.ref) == s && s.state == up && s.types[ts.typ.URL] == ts
	for _, e := range resp.twice {
		if ts.entries[e.name] == e {
			m.reject(e, &Fault{Kind: FaultRejected, Err: errTwice, At: now, Version: resp.Version})
		}
	}
	m.removeListed(now, resp)
	m.takeErrors(now, resp)
	m.removeAbsent(now, resp)
	if len(resp.lines) == 0 {
		ts.accepted = now
	}
	if len(resp.lines) == 0 && !s.Delta {
		ts.version = resp.Version
	}
	if live {
		m.settle(now, resp)
	}
	ts.busy = nil
	m.fx.Notify = append(m.fx.Notify, Notice{
		Kind: NoticeEnd, Server: s.server, TypeURL: ts.typ.URL, Version: resp.Version, Stream: resp.ref,
		Valid: resp.valid, Invalid: resp.invalid,
	})
	m.fx.Consumed = append(m.fx.Consumed, resp.ref)
	if then := resp.then; then != nil {
		if m.current(then.Ref) == s && s.state == up {
			m.take(now, s, then.Response)
		} else {
			s.dropUndelivered(then.Ref)
		}
	}
}

// settle does what a response means for the stream that it came on.
func (m *Machine) settle(now time.Time, resp *response) {
	ts, s := resp.ts, resp.ts.stream
	if s.fault != nil {
		m.recovered(s)
	}
	if ts.wildKnown && !ts.synced {
		ts.synced, ts.absence, ts.wildAmbient, ts.wildTimer = true, nil, false, 0
		m.tellWild(ts, Notice{Kind: NoticeSynced, Version: resp.Version})
	}
	m.settling(now, resp)
	m.owe(now, resp)
}

// removeListed takes the server's word for what does not exist: entries without a body,
// and delta's list.
func (m *Machine) removeListed(now time.Time, resp *response) {
	for _, e := range resp.gone {
		if resp.ts.entries[e.name] == e && !e.twice {
			resp.changed = true
			m.remove(now, e, ReasonNotFound)
		}
	}
	for _, name := range resp.Removed {
		if e := resp.ts.lookup(name); e != nil && !e.twice {
			resp.changed = true
			m.remove(now, e, ReasonRemoved)
		}
	}
}

// removeAbsent: of a type whose responses hold everything, what was held and is not there
// is deleted. What was never received may have been asked for too late to be there.
func (m *Machine) removeAbsent(now time.Time, resp *response) {
	ts := resp.ts
	if ts.stream.Delta || !ts.typ.FullState || resp.nameless || resp.whole {
		return
	}
	var gone []*entry
	for _, e := range ts.entries {
		if e.seen != resp.serial && e.known() {
			gone = append(gone, e)
		}
	}
	sortEntries(gone)
	for _, e := range gone {
		if e.held() || !e.wanted() { // of a wildcard's member the server had spoken
			resp.changed = resp.changed || !e.kept()
			m.remove(now, e, ReasonAbsent)
		}
	}
}

// takeErrors handles resource_errors (xRFC TP3, gRFC A88).
func (m *Machine) takeErrors(now time.Time, resp *response) {
	for i := range resp.Errors {
		re := &resp.Errors[i]
		switch {
		case len(re.Name) == 0:
			resp.line(-1, fmt.Sprintf("resource error index %d", i), errNameless)
		case re.Code == 0:
			resp.line(-1, fmt.Sprintf("resource error index %d: %s", i, re.Name), errNotError)
		default:
			m.takeError(now, resp, re)
		}
	}
}

var errNotError = errors.New("the status is OK")

func (m *Machine) takeError(now time.Time, resp *response, re *wire.ResourceError) {
	e := resp.ts.lookup(re.Name)
	if e == nil {
		return // not asked for
	}
	if e.seen == resp.serial {
		m.log(e, true, "a response holds both the resource and an error for it; the resource is used")
		return
	}
	e.see(resp)
	resp.changed = true
	if re.Code == codeNotFound {
		m.remove(now, e, ReasonNotFound)
		return
	}
	f := &Fault{Kind: FaultData, Err: &StatusError{re.Code, re.Message}, At: now, Version: resp.Version}
	drop := re.Code == codePermissionDenied && resp.ts.stream.FailOnDataErrors
	m.spoil(e, f, StatusReceivedError, drop)
}

// StatusError is an error that a server sent for a resource.
type StatusError struct {
	Code    int32 // of google.rpc.Status
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server sent an error for the resource: code %d: %s", e.Code, e.Message)
}

// maxMessage is how long the text of a NACK may be; headers of 8 KiB are a common limit,
// and some servers put it there.
const (
	maxMessage = 4096
	truncated  = "...(truncated)"
)

// message is the text of a NACK: everything that is wrong, cut where it gets too long.
func (resp *response) message() string {
	text := strings.ToValidUTF8(strings.Join(resp.lines, "; "), "\uFFFD")
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-len(truncated)], "") + truncated
}
