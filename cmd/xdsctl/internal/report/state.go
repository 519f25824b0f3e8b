package report

import "github.com/xdswatch/xdswatch/client"

// Statuses of CSDS's ClientResourceStatus.
const (
	StatusUnknown       = "UNKNOWN" // never asked for
	StatusRequested     = "REQUESTED"
	StatusDoesNotExist  = "DOES_NOT_EXIST"
	StatusACKED         = "ACKED"
	StatusNACKED        = "NACKED"
	StatusReceivedError = "RECEIVED_ERROR"
	StatusTimeout       = "TIMEOUT"
)

// Note changes the state as a record about the resource says; type and name stay.
func (s *State) Note(r Record) {
	is := State{Type: s.Type, Name: s.Name, Authority: s.Authority}
	switch r := r.(type) {
	case Update:
		updated := r.Time
		is.Status, is.Version, is.Server, is.Updated, is.Stale = StatusACKED, r.Version, r.Server, &updated, r.Stale
		if r.Stale {
			is.Status = StatusRequested
		}
	case Absent:
		is.Status, is.Server, is.Absence = StatusDoesNotExist, r.From, r.Why()
		is.TimedOut, is.Instead = r.Reason == reasonTimeout, r.Instead
	case Fault:
		if r.Event == EventError {
			is.Status, is.Error, is.Server = statusOf(r.Error, StatusRequested), r.Error, r.From
			break
		}
		is = *s
		is.Status, is.Error = statusOf(r.Error, StatusACKED), r.Error
	case Synced:
		is.Status, is.Server = StatusACKED, r.From
	default:
		return
	}
	*s = is
}

// statusOf is the status with an error. One of the way to the server leaves that which was.
func statusOf(e *Error, was string) string {
	if e == nil {
		return was
	}
	switch client.ErrorKind(e.Kind) {
	case client.ErrorRejected:
		return StatusNACKED
	case client.ErrorData:
		return StatusReceivedError
	case client.ErrorTimeout:
		return StatusTimeout
	case client.ErrorConfig:
		return StatusUnknown
	case client.ErrorConnection, client.ErrorStream:
	}
	return was
}
