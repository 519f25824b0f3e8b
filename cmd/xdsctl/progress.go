package main

import (
	"errors"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
)

// Statuses of CSDS's ClientResourceStatus.
const (
	statusUnknown       = "UNKNOWN" // never asked for
	statusRequested     = "REQUESTED"
	statusDoesNotExist  = "DOES_NOT_EXIST"
	statusACKED         = "ACKED"
	statusNACKED        = "NACKED"
	statusReceivedError = "RECEIVED_ERROR"
	statusTimeout       = "TIMEOUT"
)

// progress is what the events of a subscription said so far. A name with directives is
// served by other names, and those are all that the client's own dump knows.
type progress struct {
	status          string // "" is as yet statusRequested
	version, server string
	updated         time.Time // zero if nothing is held
	err             error
}

func (p *progress) note(ev client.Event[any]) {
	switch ev.Kind {
	case client.EventUpdated:
		*p = progress{status: statusACKED, version: ev.Version, server: ev.Server, updated: time.Now()}
	case client.EventDoesNotExist:
		*p = progress{status: statusDoesNotExist, server: ev.Server}
	case client.EventFailed:
		*p = progress{status: statusOf(ev.Err, statusRequested), server: ev.Server, err: ev.Err}
	case client.EventAmbientError:
		p.status, p.err = statusOf(ev.Err, statusACKED), ev.Err
	case client.EventRecovered:
		p.status, p.err = statusACKED, nil
	case client.EventSynced:
		*p = progress{status: statusACKED, version: ev.Version, server: ev.Server}
	}
}

// statusOf is the status with an error. One of the way to the server leaves that which was.
func statusOf(err error, was string) string {
	re, ok := errors.AsType[*client.ResourceError](err)
	if !ok {
		return was
	}
	switch re.Kind {
	case client.ErrorRejected:
		return statusNACKED
	case client.ErrorData:
		return statusReceivedError
	case client.ErrorTimeout:
		return statusTimeout
	case client.ErrorConnection, client.ErrorStream, client.ErrorConfig:
	}
	return was
}

// state is the subscription's own entry in a dump. The caller holds the session's mu.
func (sub *subscribed) state() report.State {
	st := report.State{Type: sub.TypeURL, Name: sub.Name, Authority: report.AuthorityOf(sub.Name)}
	if sub.err != nil {
		st.Status, st.Error = statusUnknown, report.ErrorOf(sub.err)
		return st
	}
	p := sub.progress
	st.Status, st.Version, st.Server, st.Error = p.status, p.version, p.server, report.ErrorOf(p.err)
	if st.Status == "" {
		st.Status = statusRequested
	}
	if !p.updated.IsZero() {
		updated := report.Time(p.updated)
		st.Updated = &updated
	}
	return st
}
