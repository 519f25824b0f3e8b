package route

import (
	"errors"
	"fmt"
)

// Errors of [Table.Match] and [VirtualHost.Match]. Where a route is in fault the error is a
// *[Fault].
var (
	ErrNoVirtualHost = errors.New("no virtual host matches the request's host")
	ErrNoRoute       = errors.New("no route of the virtual host matches the request")
)

// Fault is a part of a RouteConfiguration that cannot be used.
type Fault struct {
	VirtualHost string // its name
	Route       int    // its index in the virtual host; -1 if the fault is the virtual host's own
	Name        string // of the route, often empty
	Field       string // path of the field in the route or virtual host
	Err         error
}

func (f *Fault) Error() string {
	where := fmt.Sprintf("virtual host %q", f.VirtualHost)
	if f.Route >= 0 {
		where += fmt.Sprintf(", route %d", f.Route)
	}
	if f.Name != "" {
		where += fmt.Sprintf(" (%q)", f.Name)
	}
	return fmt.Sprintf("%s: %s: %v", where, f.Field, f.Err)
}

// Unwrap is the fault itself, such as that of a regular expression.
func (f *Fault) Unwrap() error { return f.Err }

// faults collects what is wrong with one route or virtual host.
type faults struct {
	host  string
	route int
	name  string
	room  *room
	all   []error
}

func (f *faults) add(field string, err error) {
	f.all = append(f.all, &Fault{f.host, f.route, f.name, field, err})
}

// ignoredByGRPC are the fields that gRPC does not look at (gRFC A28).
var ignoredByGRPC = map[string]bool{
	"match.cookies": true, "match.tls_context": true, "match.dynamic_metadata": true, "match.filter_state": true,
	"route.regex_rewrite": true, "route.path_rewrite": true, "route.path_rewrite_policy": true,
	"route.host_rewrite": true, "route.host_rewrite_path_regex": true, "route.host_rewrite_specifier": true,
}

// first is the first fault, or nil, and the first that counts in gRPC.
func (f *faults) first() (err, inGRPC error) {
	for _, e := range f.all {
		if err == nil {
			err = e
		}
		if !ignoredByGRPC[e.(*Fault).Field] {
			return err, e
		}
	}
	return err, nil
}

func (f *faults) addf(field, format string, args ...any) { f.add(field, fmt.Errorf(format, args...)) }

var errUnknown = errors.New("not supported")
