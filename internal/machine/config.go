package machine

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Config is fixed for the life of a machine.
type Config struct {
	// ResourceTimeout is the does-not-exist timeout of servers that do not say that it is
	// transient; see [Server]. Not positive: no timers.
	ResourceTimeout time.Duration
	// Linger is how long a stream stays that nobody watches anything on.
	Linger time.Duration
	// MaxResource is how many bytes a payload may have, and MaxHeld how many the payloads that are
	// held on a stream; 0 for no bound. What has more is refused.
	MaxResource int
	MaxHeld     int64
}

// Server is what the machine has to know of a management server.
type Server struct {
	Delta   bool
	PerType bool // one stream a type
	// AlwaysFull says that responses of every type hold everything that there is, whatever
	// was subscribed to, as with a file. A response of errors alone says nothing of other resources, and one of
	// its errors may be for the wildcard.
	AlwaysFull bool
	// Polled says that requests are polls, each of which is answered for itself: a stream ends
	// with one that found no answer.
	Polled bool
	// KeepDeleted is gRFC A53's ignore_resource_deletion.
	KeepDeleted bool
	// FailOnDataErrors is gRFC A88's fail_on_data_errors.
	FailOnDataErrors bool
	// TransientTimeout is gRFC A88's resource_timer_is_transient_error: when it is
	// positive it is the timeout, and its firing is an error in place of an absence.
	TransientTimeout time.Duration
	// ResumeVersion has the first request of a stream in state of the world say the version that
	// was accepted on an earlier one, where nothing that it subscribes to is unknown.
	ResumeVersion bool
	// ExplicitWildcard says that the server knows the wildcard by its name, so that it is requested
	// in no other way.
	ExplicitWildcard bool
	// NodeAlways puts the node into every request in place of a stream's first.
	NodeAlways bool
	// NoParams says that the server's version of the protocol has no dynamic parameters.
	NoParams bool
	// Rate is of each of the server's streams.
	Rate Rate

	config  *Config       // of the machine
	timeout time.Duration // of does-not-exist timers; not positive for none
	dialed  bool          // a stream was opened to it
	failed  bool          // it is not connected; see [Machine.Connected]
	budget  int           // how many bytes a delta request may have, since a larger one failed; 0 for no bound; see [exhausted]
}

// hasTimers says whether the server's silence about a name tells that there is no such resource.
func (s *Server) hasTimers() bool { return s.timeout > 0 }

// AddServer adds a server and returns its index.
func (m *Machine) AddServer(s Server) int {
	s.config = &m.config
	s.timeout = min(m.config.ResourceTimeout, longest)
	// DNE-8: the server asks for this timeout.
	if s.TransientTimeout > 0 {
		s.timeout = min(s.TransientTimeout, longest)
	}
	m.servers = append(m.servers, &s)
	return len(m.servers) - 1
}

// Type is a resource type. One value stands for one type URL.
type Type struct {
	Owner     any // the caller's own
	URL       string
	FullState bool             // a response in state of the world holds all resources of the type that are subscribed to
	NameField protowire.Number // 0 if resources are named by their wrapper alone
	Guessed   bool             // NameField is a guess: only plausible text there is a name
	Segment   string           // how structured names say the type; "" if that is not compared
	Guarded   bool             // responses are judged as a whole before they are taken
	Stored    bool             // a store may keep its resources
	// DeletionKeep is how long a value is held that a server deletes, if it does not return: 0 for not
	// at all, negative for good.
	DeletionKeep time.Duration
}

// url is "" for nil.
func (t *Type) url() string {
	if t == nil {
		return ""
	}
	return t.URL
}
