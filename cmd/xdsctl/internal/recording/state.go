package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
	"github.com/xdswatch/xdswatch/resource/wellknown"
	"github.com/xdswatch/xdswatch/xdstp"
)

// State is what servers have, by type URL. It is not changed once it is made.
type State map[string]Type

// Type is what servers have of a type.
type Type struct {
	Version   string
	Resources map[string]Resource // by name
}

// Resource is a resource with a version of its own.
type Resource struct {
	Version string
	// Content is the resource under its name, with what was said beside it but its version. It is
	// not changed.
	Content *discoveryv3.Resource
}

// Same says whether resources have the same content.
func (r Resource) Same(other Resource) bool { return proto.Equal(r.Content, other.Content) }

// Moment is a state, and when it began after the first frame of its recording.
type Moment struct {
	After time.Duration
	State State
}

// Read reads a recording: the states one after another, at least one. The faults are resources that
// cannot be read, which it leaves out, and [ErrCut]; they quote no value. The error is [ErrNotRecording], or one
// of reading the file.
func Read(path string) (moments []Moment, faults []error, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular() || info.Size() > resources.MaxFile:
		return nil, nil, ErrNotRecording
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	frames, cut, err := parse(data)
	if err != nil {
		return nil, nil, &resources.FileError{File: path, Err: err}
	}
	var r reader
	for i, f := range frames {
		if f.Direction == Response && f.Type != "" {
			for _, fault := range r.response(f) {
				faults = append(faults, fmt.Errorf("frame %d: %w", i+1, fault))
			}
		}
	}
	if cut {
		faults = append(faults, ErrCut)
	}
	return r.moments(frames[0].Time), faults, nil
}

// Resources are those of a state, by type and name.
func (s State) Resources() (all []resources.Resource, err error) {
	for _, url := range slices.Sorted(maps.Keys(s)) {
		for _, name := range slices.Sorted(maps.Keys(s[url].Resources)) {
			r := s[url].Resources[name]
			rs, err := resources.FromAny(r.Content.GetResource(), r.Version)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", name, err)
			}
			if len(rs) == 1 {
				rs[0].Type, rs[0].Name = url, name // a redirect is of the type that it stands for
			}
			all = append(all, rs...)
		}
	}
	return all, nil
}

// reader collects the versions of types.
type reader struct {
	versions []*version // by their beginning
}

// version is what a server had of a type under one version. Responses of the same version are of
// the same state, however much of it the client asked for.
type version struct {
	server, typeURL, version string
	begin                    time.Time
	delta                    bool // resources have versions of their own
	full                     bool // what is not in it is not there any more
	changed                  map[string]Resource
	removed                  []string
	beats                    []*discoveryv3.Resource // heartbeats: without a resource
}

// response adds a response to the version that it is of.
func (r *reader) response(f Frame) (faults []error) {
	v := version{server: f.Server, typeURL: f.Type, begin: f.Time, delta: f.Variant == Delta, changed: map[string]Resource{}}
	if v.delta {
		faults = v.readDelta(f.Message)
	} else {
		faults = v.readSotW(f.Message)
	}
	r.heartbeats(&v)
	if len(v.beats) > 0 && len(v.changed)+len(v.removed) == 0 { // a server has what it had
		return faults
	}
	for _, old := range slices.Backward(r.versions) {
		if old.typeURL != v.typeURL || old.server != v.server && !alike(old.changed, v.changed) {
			continue
		}
		if old.server == v.server && v.version != "" && old.version == v.version {
			maps.Copy(old.changed, v.changed)
			for _, name := range v.removed {
				delete(old.changed, name)
			}
			old.removed = append(old.removed, v.removed...)
			return faults
		}
		break
	}
	r.versions = append(r.versions, &v)
	return faults
}

// heartbeats gives the resources of earlier versions the times to live of the heartbeats of v.
func (r *reader) heartbeats(v *version) {
	for _, beat := range v.beats {
		for _, old := range slices.Backward(r.versions) {
			held, ok := old.changed[beat.GetName()]
			if !ok || old.server != v.server || old.typeURL != v.typeURL {
				continue
			}
			held.Content = proto.CloneOf(held.Content)
			held.Content.Ttl = beat.GetTtl()
			old.changed[beat.GetName()] = held
			break
		}
	}
}

func (v *version) readSotW(text json.RawMessage) (faults []error) {
	var m struct {
		Version   string            `json:"versionInfo"`
		Resources []json.RawMessage `json:"resources"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return []error{err}
	}
	v.version = m.Version
	if e, ok := wellknown.ByTypeURL(v.typeURL); ok {
		v.full = e.Kind.FullState()
	}
	for i, text := range m.Resources {
		if fault := v.add(&discoveryv3.Resource{}, m.Version, text); fault != nil {
			faults = append(faults, fmt.Errorf("resources[%d]: %w", i, fault))
		}
	}
	return faults
}

func (v *version) readDelta(text json.RawMessage) (faults []error) {
	var m struct {
		Version   string `json:"systemVersionInfo"`
		Resources []struct {
			Name     string          `json:"name"`
			Version  string          `json:"version"`
			Aliases  []string        `json:"aliases"`
			TTL      json.RawMessage `json:"ttl"`
			Resource json.RawMessage `json:"resource"`
		} `json:"resources"`
		Removed []string `json:"removedResources"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return []error{err}
	}
	v.version, v.removed = m.Version, m.Removed
	for i, r := range m.Resources {
		said := &discoveryv3.Resource{Name: r.Name, Aliases: r.Aliases}
		if r.TTL != nil {
			said.Ttl = &durationpb.Duration{}
			if protojson.Unmarshal(r.TTL, said.Ttl) != nil {
				faults = append(faults, fmt.Errorf("resources[%d]: %w", i, errUnreadable("has a time to live that cannot be read")))
				continue
			}
		}
		switch {
		case r.Resource != nil:
		case r.Version == "": // the answer that there is none
			continue
		default:
			v.beats = append(v.beats, said)
			continue
		}
		if fault := v.add(said, r.Version, r.Resource); fault != nil {
			faults = append(faults, fmt.Errorf("resources[%d]: %w", i, fault))
		}
	}
	return faults
}

// errUnreadable quotes nothing.
type errUnreadable string

func (e errUnreadable) Error() string { return string(e) }

// add adds a resource, whose wrapper may say more of it.
func (v *version) add(r *discoveryv3.Resource, of string, text json.RawMessage) error {
	a, err := resourcejson.ParseAny(text)
	if err != nil {
		return errUnreadable("cannot be read back")
	}
	r.Resource = a
	if a.GetTypeUrl() == resource.TypePrefix+"envoy.service.discovery.v3.Resource" {
		r.Reset()
		if a.UnmarshalTo(r) != nil {
			return errUnreadable("holds no resource")
		}
		if r.GetResource() == nil {
			v.beats = append(v.beats, r)
			return nil
		}
		r.Version = ""
	}
	if r.Name == "" {
		rs, err := resources.FromAny(r.GetResource(), "")
		if err != nil || len(rs) != 1 || rs[0].Name == "" {
			return errUnreadable("has no name that can be read")
		}
		r.Name = rs[0].Name
	}
	v.changed[r.Name] = Resource{of, r}
	return nil
}

// source is a type at a server.
type source struct{ server, typeURL string }

// moments makes states of the versions. What a server said first of names that no other had spoken of, it had from the
// beginning.
func (r *reader) moments(begin time.Time) []Moment {
	h := held{types: map[source]Type{}}
	first := State{}
	var later []*version
	for _, v := range r.versions {
		s := source{v.server, v.typeURL}
		if _, ok := h.types[s]; !ok && !h.speaksInPlace(v) {
			h.take(s, v.after(Type{}))
			first[v.typeURL] = h.together(v.typeURL)
			continue
		}
		later = append(later, v)
	}
	moments := []Moment{{State: first}}
	for _, v := range later {
		s := source{v.server, v.typeURL}
		h.take(s, v.after(h.types[s]))
		last := moments[len(moments)-1]
		next := Moment{max(v.begin.Sub(begin), last.After), maps.Clone(last.State)}
		next.State[v.typeURL] = h.together(v.typeURL)
		moments = append(moments, next)
	}
	return moments
}

// held is what servers have.
type held struct {
	types map[source]Type
	order []source // the one that spoke last is the last
}

func (h *held) take(s source, t Type) {
	h.types[s] = t
	h.order = append(slices.DeleteFunc(h.order, func(o source) bool { return o == s }), s)
}

// authorities are those of the names that a server speaks of: "" of names without one, which it speaks of if it has none.
func authorities(resources map[string]Resource) map[string]bool {
	all := map[string]bool{}
	for name := range resources {
		authority, _ := xdstp.AuthorityOf(name)
		all[authority] = true
	}
	if len(all) == 0 {
		all[""] = true
	}
	return all
}

// speaksInPlace says whether another server has spoken of names like those of a version: one of the servers stands in for the
// other.
func (h *held) speaksInPlace(v *version) bool {
	return slices.ContainsFunc(h.order, func(s source) bool {
		return s.typeURL == v.typeURL && s.server != v.server && alike(h.types[s].Resources, v.changed)
	})
}

// alike says whether two servers speak of names of one authority.
func alike(a, b map[string]Resource) bool {
	of := authorities(a)
	for authority := range authorities(b) {
		if of[authority] {
			return true
		}
	}
	return false
}

// together is what the client has of a type. Of the names of an authority the word of the server that spoke last counts:
// of a type whose responses hold everything for all of them, else for those that it has.
func (h *held) together(typeURL string) Type {
	e, known := wellknown.ByTypeURL(typeURL)
	whole := known && e.Kind.FullState()
	all, said := Type{Resources: map[string]Resource{}}, map[string]bool{}
	var versions []string
	for _, s := range slices.Backward(h.order) {
		if s.typeURL != typeURL {
			continue
		}
		t, counts := h.types[s], len(versions) == 0
		for name, r := range t.Resources {
			authority, _ := xdstp.AuthorityOf(name)
			if _, ok := all.Resources[name]; !ok && !(whole && said[authority]) {
				all.Resources[name], counts = r, true
			}
		}
		maps.Copy(said, authorities(t.Resources))
		if counts {
			versions = append(versions, t.Version)
		}
	}
	slices.Reverse(versions)
	all.Version = strings.Join(versions, ",")
	return all
}

// after is the type at a server when a version has come.
func (v *version) after(t Type) Type {
	next := Type{cmp.Or(v.version, v.begin.Format(time.RFC3339Nano)), maps.Clone(t.Resources)}
	if next.Resources == nil || v.full {
		next.Resources = map[string]Resource{}
	}
	for _, beat := range v.beats { // which says that it is there
		if r, ok := t.Resources[beat.GetName()]; ok {
			next.Resources[beat.GetName()] = r
		}
	}
	for _, name := range v.removed {
		delete(next.Resources, name)
	}
	for name, r := range v.changed {
		if old, ok := t.Resources[name]; ok && !v.delta && old.Same(r) {
			r = old // its version is that of its last change
		}
		r.Version = cmp.Or(r.Version, next.Version)
		next.Resources[name] = r
	}
	return next
}
