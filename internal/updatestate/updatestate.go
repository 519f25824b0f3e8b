// Package updatestate says in the words of Envoy's administration what a client's state of a
// resource says.
package updatestate

import (
	"strings"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/xdstp"
)

// Status is the status of a resource.
func Status(s client.State) adminv3.ClientResourceStatus {
	// CSDS-3: the status of this resource. The machine refuses the resources of a response one by one.
	return adminv3.ClientResourceStatus(adminv3.ClientResourceStatus_value[string(s.Status)])
}

// IsCollection says that a name is that of a collection as a whole, and of no resource.
func IsCollection(name string) bool { return name == "*" || xdstp.IsGlob(name) }

// Error is what is wrong with a resource, without the content that failed; nil if nothing is. Trouble
// with the server is no error of a value that is held, of which there may be many.
func Error(s client.State) *adminv3.UpdateFailureState {
	re, ok := s.Err.(*client.ResourceError)
	if !ok || s.Raw != nil && (re.Kind == client.ErrorConnection || re.Kind == client.ErrorStream) {
		return nil
	}
	// CSDS-d: the last failed update.
	return &adminv3.UpdateFailureState{
		Details: Valid(re.Error()), VersionInfo: Valid(re.Version), LastUpdateAttempt: Timestamp(s.Failed),
	}
}

// Timestamp is a time, or nil for zero.
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Valid is a text as protobuf takes it.
func Valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
