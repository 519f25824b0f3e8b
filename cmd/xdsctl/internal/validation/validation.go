// Package validation judges resources in files: by the rules of their messages (PGV), as gRPC or as
// Envoy does, and by what they name.
package validation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/subscription"
	"github.com/xdswatch/xdswatch/validate/grpcrules"
)

// Rules. Their texts are stable.
const (
	RuleSyntax      = "syntax"       // the file cannot be read
	RuleName        = "name"         // a resource has to have one
	RuleDuplicate   = "duplicate"    // a name is given once
	RuleField       = "field"        // a rule of the message (PGV)
	RuleAny         = "any"          // an Any holds what its type says
	RuleUnknownType = "unknown-type" // nothing is known of a type, so nothing is judged
	RuleReference   = "reference"    // what is named is there
	RuleMore        = "more"         // there is more to find than is listed
)

// Severity is how bad a finding is. Its texts are stable.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	File     string   `json:"file"`
	Type     string   `json:"type"` // URL; "" of a file
	Name     string   `json:"name"`
	Path     string   `json:"path"` // of the field, by the names of JSON; "" is the resource
	Rule     string   `json:"rule"`
	Message  string   `json:"message"`
	Severity Severity `json:"severity"`
}

// Options say how to judge.
type Options struct {
	// Closed says that nothing is elsewhere: what is named and not there is an error, and else
	// a warning.
	Closed bool
	// As is who judges: "" the messages' own rules, "grpc" or "envoy".
	As Judges
	// Providers are the certificate providers of gRPC's bootstrap; nil if it is not known.
	Providers map[string]bool
}

// Judges is who judges. Its texts are stable.
type Judges string

// Those who judge.
const (
	AsGRPC  Judges = "grpc"
	AsEnvoy Judges = "envoy"
)

// Judge finds what is wrong with resources, by file, type, name and path. No finding quotes a
// value.
func Judge(rs []resources.Resource, o Options) []Finding {
	j := judge{Options: o, there: map[id]string{}, anywhere: map[id]bool{}, bound: map[string]string{}, findings: []Finding{}}
	for _, r := range rs {
		j.single(r)
	}
	for _, r := range rs {
		j.references(r)
	}
	Sort(j.findings)
	return j.findings
}

// Sort orders findings by file, type, name and path; equal ones keep their order.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path))
	})
}

// maxFindings is how many findings of a file are listed.
const maxFindings = 1000

// Bound takes out of findings that are sorted what is too many of a file, warnings first, and says how many these are. That
// is an error if one of them is.
func Bound(findings []Finding) (some []Finding) {
	some = findings[:0]
	for len(findings) > 0 {
		n := 1
		for n < len(findings) && findings[n].File == findings[0].File {
			n++
		}
		of := findings[:n]
		findings = findings[n:]
		if n <= maxFindings {
			some = append(some, of...)
			continue
		}
		slices.SortStableFunc(of, func(a, b Finding) int { return cmp.Compare(rank(a), rank(b)) })
		rest := of[maxFindings:]
		Sort(of[:maxFindings])
		more := Finding{File: of[0].File, Rule: RuleMore, Message: fmt.Sprintf("%d more findings", len(rest)), Severity: Warning}
		if slices.ContainsFunc(rest, func(f Finding) bool { return f.Severity == Error }) {
			more.Severity = Error
		}
		some = append(append(some, of[:maxFindings]...), more)
	}
	return some
}

// rank has errors before warnings.
func rank(f Finding) int {
	if f.Severity == Error {
		return 0
	}
	return 1
}

// Broken are the findings of an error of [resources.Read] with a path.
func Broken(path string, err error) (findings []Finding) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			findings = append(findings, Broken(path, e)...)
		}
		return findings
	}
	f := Finding{File: path, Rule: RuleSyntax, Message: err.Error(), Severity: Error}
	if fe, ok := err.(*resources.FileError); ok {
		return Broken(fe.File, fe.Err)
	}
	if re, ok := errors.AsType[*resources.ResourceError](err); ok {
		if re.Partly { // what was read is judged, which finds the same
			return nil
		}
		f.Type, f.Name, f.Path, f.Message = re.Type, re.Name, re.Path, re.Err.Error()
	}
	return []Finding{f}
}

// id is what a name is given once in: the scopes of a process do not see one another.
type id struct{ scope, typeURL, name string }

type judge struct {
	Options
	there    map[id]string     // the file
	anywhere map[id]bool       // whatever the scope is
	bound    map[string]string // by address, the listener; of Envoy
	findings []Finding
}

func (j *judge) found(r resources.Resource, s Severity, rule, path, message string) {
	if r.Scope != "" {
		message += fmt.Sprintf(" (scope %q)", r.Scope)
	}
	j.findings = append(j.findings, Finding{
		File: r.File, Type: r.Type, Name: r.Name, Path: path, Rule: rule, Message: message, Severity: s,
	})
}

// single judges a resource by itself.
func (j *judge) single(r resources.Resource) {
	own := id{r.Scope, r.Type, r.Name}
	switch before, twice := j.there[own]; {
	case r.Name == "": // see below
	case twice:
		j.found(r, Error, RuleDuplicate, "", "the name is given before, in "+before)
	default:
		j.there[own] = r.File
		j.anywhere[id{"", r.Type, r.Name}] = true
	}
	if r.Message == nil {
		j.found(r, Warning, RuleUnknownType, "", "the type is not known here, so nothing is judged")
		return
	}
	begin := len(j.findings)
	if j.As == AsGRPC {
		j.grpc(r)
	} else {
		j.messages(r)
	}
	told := func(f Finding) bool { return f.Path == "name" || f.Path == "clusterName" } // by a rule of its field
	if r.Name == "" && !slices.ContainsFunc(j.findings[begin:], told) {
		j.found(r, Error, RuleName, "", "the resource has no name")
	}
}

// messages judges a resource by the rules of the messages in it, and as Envoy does.
func (j *judge) messages(r resources.Resource) {
	resources.Walk(r.Message, func(path string, m proto.Message, whole bool) {
		if a, ok := m.(*anypb.Any); ok {
			j.any(r, path, a)
			return
		}
		if whole {
			j.fields(r, path, m)
		}
		if j.As == AsEnvoy {
			j.envoy(r, path, m)
		}
	})
}

// grpc judges a resource as gRPC does.
func (j *judge) grpc(r resources.Resource) {
	for _, f := range (grpcrules.Options{Providers: j.Providers}).Judge(r.Message) {
		severity := Error
		if f.Ignored {
			severity = Warning
		}
		j.found(r, severity, string(f.Rule), f.Path, f.Message)
	}
}

// any judges one whose content cannot be read.
func (j *judge) any(r resources.Resource, path string, a *anypb.Any) {
	if a.GetTypeUrl() == "" {
		return // PGV says where one has to be
	}
	if _, err := protoregistry.GlobalTypes.FindMessageByURL(a.GetTypeUrl()); err != nil {
		j.found(r, Warning, RuleUnknownType, path, fmt.Sprintf("the type %q is not known here, so its content is not judged", a.GetTypeUrl()))
		return
	}
	j.found(r, Error, RuleAny, path, fmt.Sprintf("the content is not a message of type %q", a.GetTypeUrl()))
}

// references judges what a resource names.
func (j *judge) references(r resources.Resource) {
	if r.Message == nil {
		return
	}
	severity := Warning
	if j.Closed {
		severity = Error
	}
	for _, ref := range resources.References(r.Message) {
		if !j.sees(r.Scope, ref) {
			j.found(r, severity, RuleReference, ref.Path, fmt.Sprintf("names %s %q, which is not in the files", subscription.Short(ref.Type), ref.Name))
		}
	}
}

// sees says whether what is named is there: in the scope or in none, and for what is in none in any.
func (j *judge) sees(scope string, ref resources.Reference) bool {
	all := id{"", ref.Type, ref.Name}
	if scope == "" {
		return j.anywhere[all]
	}
	_, own := j.there[id{scope, ref.Type, ref.Name}]
	_, shared := j.there[all]
	return own || shared
}
