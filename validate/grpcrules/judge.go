package grpcrules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource"
)

// Options say for which gRPC a resource is judged. The zero value is grpc-go as it is, without the
// features that an environment variable turns on, and without a bootstrap. Options are safe for
// concurrent use.
type Options struct {
	// Providers are the names of certificate providers in the bootstrap. nil means that the
	// bootstrap is not known: no name is judged. An empty map means that there are none.
	Providers map[string]bool
	// SystemRoots is that of GRPC_EXPERIMENTAL_XDS_SYSTEM_ROOT_CERTS (gRFC A82).
	SystemRoots bool
	// HTTPConnect is that of GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT (gRFC A86).
	HTTPConnect bool
	// GCPAuthentication is that of GRPC_EXPERIMENTAL_XDS_GCP_AUTHENTICATION_FILTER (gRFC A83).
	GCPAuthentication bool
	// SNI is that of GRPC_EXPERIMENTAL_XDS_SNI (gRFC A101).
	SNI bool
	// Policies are the names of load balancing policies that the program registers with gRPC
	// beside its own ones. Their configuration is not judged.
	Policies []string
}

// Finding is one thing that gRPC refuses or ignores.
type Finding struct {
	Rule Rule
	// Path is that of the field by the names of JSON, as in
	// "apiListener.apiListener.httpFilters[0].name"; "" is the resource.
	Path    string
	Message string // quotes no value but names of certificate providers
	// Ignored says that gRPC accepts the resource without this part of it.
	Ignored bool
}

func (f Finding) String() string {
	return strings.TrimPrefix(fmt.Sprintf("%s: %s (%s)", f.Path, f.Message, f.Rule), ": ")
}

// Judge finds all that gRPC refuses or ignores in a resource, in the order of the paths. What stands in
// an Any is judged where gRPC reads it. gRPC accepts a resource if all that is found is ignored. A
// resource of a type that gRPC does not ask for is found as ignored.
func (o Options) Judge(m proto.Message) []Finding {
	j := &judge{Options: o}
	switch m := m.(type) {
	case *listenerv3.Listener:
		j.named(m.GetName(), "name")
		j.listener(m)
	case *routev3.RouteConfiguration:
		j.named(m.GetName(), "name")
		j.routes("", m)
	case *clusterv3.Cluster:
		j.named(m.GetName(), "name")
		j.cluster(m)
	case *endpointv3.ClusterLoadAssignment:
		j.named(m.GetClusterName(), "clusterName")
		j.assignment(m)
	default:
		j.ignores(RuleType, "", "gRPC does not ask for resources of this type")
	}
	slices.SortFunc(j.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(j.findings)
}

// Error is a resource that gRPC would refuse.
type Error struct {
	Findings []Finding // at least one, none of them ignored
}

func (e *Error) Error() string {
	text := "gRPC refuses the resource: " + e.Findings[0].String()
	if more := len(e.Findings) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// Check returns an [*Error] if gRPC would refuse the resource, and nil if it would accept it. It can be
// given to [resource.With], so that a client refuses it too.
func (o Options) Check(m proto.Message) error {
	bad := slices.DeleteFunc(o.Judge(m), func(f Finding) bool { return f.Ignored })
	if len(bad) == 0 {
		return nil
	}
	return &Error{bad}
}

// Guard makes a guard that refuses a response with a resource that gRPC would refuse; gRPC itself would
// take the other resources of that response. It is for values that are messages, lazy ones too, which it
// decodes: others are not judged, nor is a lazy value that its type cannot decode.
func (o Options) Guard() client.Guard {
	return func(p *client.Proposal) error {
		for _, c := range p.Changed {
			value, err := resource.Decoded(c.Value)
			if m, ok := value.(proto.Message); ok && err == nil {
				if err := o.Check(m); err != nil {
					return fmt.Errorf("%q: %w", c.Name, err)
				}
			}
		}
		return nil
	}
}

// judge collects findings about one resource.
type judge struct {
	Options
	findings []Finding
}

// refuses notes what gRPC refuses.
func (j *judge) refuses(r Rule, path, message string) {
	j.findings = append(j.findings, Finding{Rule: r, Path: path, Message: message})
}

// ignores notes what gRPC ignores.
func (j *judge) ignores(r Rule, path, message string) {
	j.findings = append(j.findings, Finding{Rule: r, Path: path, Message: message, Ignored: true})
}

func (j *judge) named(name, field string) {
	if name == "" {
		j.refuses(RuleName, field, "the resource has no name")
	}
}

// read decodes what stands in an Any, whatever its type URL, and says whether it could.
func (j *judge) read(path string, a *anypb.Any, m proto.Message) bool {
	if err := proto.Unmarshal(a.GetValue(), m); err != nil {
		j.refuses(RuleParse, path, fmt.Sprintf("the content is no %s", m.ProtoReflect().Descriptor().FullName()))
		return false
	}
	return true
}

// isA says whether an Any has the type URL that gRPC looks for.
func isA(a *anypb.Any, m proto.Message) bool {
	return a.GetTypeUrl() == "type.googleapis.com/"+string(m.ProtoReflect().Descriptor().FullName())
}

// join appends a field to a path.
func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// at is the path of an element of a list.
func at(path, field string, i int) string { return fmt.Sprintf("%s[%d]", join(path, field), i) }

// atKey is the path of a value of a map.
func atKey(path, field, key string) string { return fmt.Sprintf("%s[%q]", join(path, field), key) }
