package testutil

import (
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// Request is a discovery request that a server received. It is not changed once it was
// handed out, and must not be changed by its readers.
type Request struct {
	// Stream is the ID of the stream on which it came.
	Stream int
	// At is the time of its receipt; fake time in a testing/synctest bubble.
	At time.Time
	// SotW is the request of a state-of-the-world stream, else nil.
	SotW *discoveryv3.DiscoveryRequest
	// Delta is the request of a delta stream, else nil.
	Delta *discoveryv3.DeltaDiscoveryRequest
	// Size is the size of the message in bytes.
	Size int
	// Raw is the message as it came. Nil in requests that a [ManagementServer] reports.
	Raw []byte
	// Err says why Raw is not a discovery request; SotW and Delta are nil then.
	Err error
}

func parseRequest(stream int, delta bool, raw []byte) *Request {
	r := &Request{Stream: stream, At: time.Now(), Size: len(raw), Raw: raw}
	if delta {
		r.Delta = new(discoveryv3.DeltaDiscoveryRequest)
	} else {
		r.SotW = new(discoveryv3.DiscoveryRequest)
	}
	if r.Err = proto.Unmarshal(raw, r.message()); r.Err != nil {
		r.SotW, r.Delta = nil, nil
	}
	return r
}

// message is the request of either variant; one without fields if there is none.
func (r *Request) message() interface {
	proto.Message
	GetTypeUrl() string
	GetResponseNonce() string
	GetErrorDetail() *statuspb.Status
	GetNode() *corev3.Node
} {
	if r.Delta != nil {
		return r.Delta
	}
	return r.SotW
}

// TypeURL is the type that is asked for; empty where a stream of a single type left it out.
func (r *Request) TypeURL() string { return r.message().GetTypeUrl() }

// Nonce is the nonce of the response that is answered, empty in a spontaneous request.
func (r *Request) Nonce() string { return r.message().GetResponseNonce() }

// Version is version_info, which only state-of-the-world requests have.
func (r *Request) Version() string { return r.SotW.GetVersionInfo() }

// ErrorDetail is why a response was rejected; its presence makes the request a NACK (xDS
// protocol, "ACK/NACK and versioning"). Nil in every other request.
func (r *Request) ErrorDetail() *statuspb.Status { return r.message().GetErrorDetail() }

// Node is the client's description of itself, nil in a request that leaves it out.
func (r *Request) Node() *corev3.Node { return r.message().GetNode() }

// Names are the names asked for: resource_names, which is everything wanted, or
// resource_names_subscribe, which is what is wanted anew.
func (r *Request) Names() []string {
	if r.Delta != nil {
		return r.Delta.GetResourceNamesSubscribe()
	}
	return r.SotW.GetResourceNames()
}

// Locators are what is asked for with dynamic parameters (xRFC TP2): resource_locators, or
// resource_locators_subscribe. Their names are not among Names.
func (r *Request) Locators() []*discoveryv3.ResourceLocator {
	if r.Delta != nil {
		return r.Delta.GetResourceLocatorsSubscribe()
	}
	return r.SotW.GetResourceLocators()
}

// Unsubscribed are the names let go, resource_names_unsubscribe of a delta request.
func (r *Request) Unsubscribed() []string { return r.Delta.GetResourceNamesUnsubscribe() }

// String is the request on one line, for the messages of tests.
func (r *Request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stream %d: ", r.Stream)
	switch {
	case r.Delta != nil:
		fmt.Fprintf(&b, "delta %s subscribe=%q unsubscribe=%q initial=%q",
			r.TypeURL(), r.Names(), r.Unsubscribed(), r.Delta.GetInitialResourceVersions())
	case r.SotW != nil:
		fmt.Fprintf(&b, "sotw %s names=%q version=%q", r.TypeURL(), r.Names(), r.Version())
	default:
		fmt.Fprintf(&b, "%d bytes that are no request: %v", r.Size, r.Err)
		return b.String()
	}
	for _, l := range r.Locators() {
		fmt.Fprintf(&b, " locator=%q%v", l.GetName(), l.GetDynamicParameters())
	}
	fmt.Fprintf(&b, " nonce=%q", r.Nonce())
	if detail := r.ErrorDetail(); detail != nil {
		fmt.Fprintf(&b, " error=%q", detail.GetMessage())
	}
	return b.String()
}
