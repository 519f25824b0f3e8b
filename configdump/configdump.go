// Package configdump shows what a process holds in the form of Envoy's administration: it serves
// /config_dump for clients of package client.
//
//	mux.Handle("/config_dump", configdump.Handler(c))
//
// Readers of Envoy's dump read it, such as istioctl and egctl. Its sections are all there, in Envoy's
// order, empty ones too: bootstrap (the node), clusters, extension configurations, endpoints if they
// are asked for, listeners, scoped routes, routes and secrets. It is written while it is read from the client, so
// that the contents of many resources cost little memory.
//
// What is secret is redacted, and messages that are not linked into the program are shown by their
// types alone (see package resourcejson). Who can read it learns the rest of the configuration all the same:
// serve it where only operators come.
package configdump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"regexp/syntax"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/updatestate"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// Source is what a dump is of: a client ([Of]), or something else that has resources.
type Source interface {
	// Node is who the source is to its servers; nil if that is not known.
	Node() *corev3.Node
	// Resources yields the resources of a type URL by name.
	Resources(typeURL string) iter.Seq[Resource]
}

// Resource is a resource in a dump.
type Resource struct {
	Name, Version string     // Version is that of Content
	Content       *anypb.Any // that is in use; nil if none is
	Updated       time.Time  // when it came; zero if that is not known
	Status        adminv3.ClientResourceStatus
	Error         *adminv3.UpdateFailureState // of the last failed update; nil for none
}

// Of makes a source of a client. It is read page by page, as [client.Client.States] says.
func Of(c *client.Client) Source { return ofClient{c} }

type ofClient struct{ *client.Client }

func (c ofClient) Resources(typeURL string) iter.Seq[Resource] {
	return func(yield func(Resource) bool) {
		for s := range c.States(typeURL) {
			if s.Redirect != "" || updatestate.IsCollection(s.Name) {
				continue // the resource is elsewhere, or is none
			}
			r := Resource{
				Name: updatestate.Valid(s.Name), Version: updatestate.Valid(s.Version), Updated: s.Updated,
				Status: updatestate.Status(s), Error: updatestate.Error(s),
			}
			if s.Raw != nil {
				r.Content = &anypb.Any{TypeUrl: typeURL, Value: s.Raw}
			}
			if r.Error != nil && s.Refused != nil && s.Refused.Raw != nil {
				r.Error.FailedConfiguration = &anypb.Any{TypeUrl: s.Refused.Type, Value: s.Refused.Raw}
			}
			if !yield(r) {
				return
			}
		}
	}
}

// Options are the query parameters of Envoy's /config_dump. The zero value is the whole dump without endpoints.
type Options struct {
	// Resource is the name of a field of a section, such as "dynamic_active_clusters": only its
	// elements are written.
	Resource string
	// Mask are the fields that are written, as "name,cluster.name": those of each element with
	// Resource, else of the sections. It goes through lists and through what an Any contains. It has 4096 bytes at most.
	Mask string
	// NameRegex is matched with whole names of resources (RE2). It has 1024 bytes at most, and 500 steps:
	// each character and each class is one, as often as it is repeated.
	NameRegex string
	// IncludeEDS adds the section with the endpoints.
	IncludeEDS bool
}

// ErrNotFound is the error for an [Options.Resource] that is no field of a section.
var ErrNotFound = errors.New("not found in config dump")

// Parse reads options from a query: resource, mask, name_regex and include_eds, whose value does not matter.
// Others are ignored.
func Parse(query url.Values) Options {
	return Options{Resource: query.Get("resource"), Mask: query.Get("mask"), NameRegex: query.Get("name_regex"), IncludeEDS: query.Has("include_eds")}
}

// Handler serves the dump of clients. It answers GET and HEAD; a bad query has status 400, and a resource
// that there is not 404, as Envoy's.
//
// It answers whatever the request's Host is, as Envoy does, so a web page on the same machine can read it through a name
// that resolves to the loopback address. Package statuspage serves the same under config_dump and looks at the Host.
func Handler(clients ...*client.Client) http.Handler {
	var sources []Source
	for _, c := range clients {
		sources = append(sources, Of(c))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "want GET", http.StatusMethodNotAllowed)
			return
		}
		d, err := newDump(Parse(r.URL.Query()))
		switch {
		case errors.Is(err, ErrNotFound):
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache, max-age=0")
		if r.Method == http.MethodGet {
			d.over = r.Context().Done()
			_ = d.write(w, sources) // who reads has gone
		}
	})
}

// Write writes the dump of sources as JSON, an element a line. What is wrong with the options is told before
// anything is written: [ErrNotFound], or which of them is bad; other errors are those of w.
func Write(w io.Writer, o Options, sources ...Source) error {
	d, err := newDump(o)
	if err != nil {
		return err
	}
	return d.write(w, sources)
}

func newDump(o Options) (*dump, error) {
	d := &dump{Options: o, json: resourcejson.NewWriter(form)}
	if o.NameRegex != "" {
		var err error
		if d.names, err = wholeNames(o.NameRegex); err != nil {
			return nil, fmt.Errorf("name_regex: %w", err)
		}
	}
	if len(o.Mask) > maxMask {
		return nil, fmt.Errorf("mask: it has more than %d bytes", maxMask)
	}
	d.mask = parseMask(o.Mask)
	if !d.has(o.Resource) {
		return nil, fmt.Errorf("%s %w", o.Resource, ErrNotFound)
	}
	if bad := d.badPath(); bad != "" {
		return nil, fmt.Errorf("mask: there is no field %q", bad)
	}
	return d, nil
}

// maxMask bounds what it takes to read a mask, whose paths lead through recursive messages as deep as they are long.
const maxMask = 4096 // bytes

// The bounds of a NameRegex: what a name costs is its length times the steps.
const (
	maxRegex = 1024 // bytes
	maxSteps = 500
)

// wholeNames compiles an expression that is matched with whole names.
func wholeNames(expr string) (*regexp.Regexp, error) {
	if len(expr) > maxRegex {
		return nil, fmt.Errorf("the expression has more than %d bytes", maxRegex)
	}
	alone, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err // by itself: the parentheses below would close what expr leaves open
	}
	expr = "^(?:" + alone.String() + ")$"
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxSteps {
		return nil, fmt.Errorf("the expression has more than %d steps with what it repeats", maxSteps)
	}
	return regexp.Compile(expr)
}

// write writes the dump, while the sources are read.
func (d *dump) write(w io.Writer, sources []Source) error {
	d.out, d.sources = bufio.NewWriterSize(w, bufferSize), sources
	d.text(`{"configs":[`)
	for _, s := range sections {
		if !s.endpoints || d.IncludeEDS || d.Resource != "" {
			d.section(s)
		}
	}
	d.text("]}\n")
	return d.out.Flush()
}

const bufferSize = 64 << 10
